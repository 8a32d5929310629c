/**
 * Runs a program of this folder in a process of its own and gives the object that it printed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

/**
 * @param {string} name file in `bench/programs`, or from `bench` on when it has a slash
 * @param {object} settings given as JSON
 * @param {{ flags?: string[], timeout?: number }} [options] flags of Node; milliseconds, default three minutes
 */
export function runProgram(name, settings, { flags = [], timeout = 180_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        '--max-old-space-size=2000',
        ...flags,
        path.join(here, name.includes('/') ? name : `programs/${name}`),
        JSON.stringify(settings),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout)
    let output = ''
    let errors = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors = (errors + text).slice(-4000)
    })
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      const last = output.trimEnd().split('\n').at(-1) ?? ''
      if (code === 0 && last.startsWith('{')) resolve(JSON.parse(last))
      else
        reject(
          new Error(
            `${name} ${JSON.stringify(settings)} ended with ${signal ?? code}: ${errors.trim().split('\n').slice(0, 12).join('\n')}`,
          ),
        )
    })
  })
}

/**
 * Runs a program under the sampling profiler: functions by their own time, the largest first.
 * @returns {Promise<{ name: string, place: string, share: number }[]>} `share` of the time in which the program was not idle
 */
export async function profileProgram(name, settings, options = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-profile-'))
  try {
    await runProgram(name, settings, {
      ...options,
      flags: [...(options.flags ?? []), '--cpu-prof', `--cpu-prof-dir=${folder}`],
    })
    const file = readdirSync(folder).find((each) => each.endsWith('.cpuprofile'))
    if (file === undefined) throw new Error(`${name} left no profile`)
    return ownTimes(JSON.parse(readFileSync(path.join(folder, file), 'utf8')))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Functions of a profile by their own time. */
export function ownTimes({ nodes, samples, timeDeltas }) {
  const times = new Map()
  for (const [index, id] of samples.entries())
    times.set(id, (times.get(id) ?? 0) + timeDeltas[index])
  const functions = new Map()
  let total = 0
  for (const { id, callFrame } of nodes) {
    const time = times.get(id) ?? 0
    if (time <= 0 || callFrame.functionName === '(idle)') continue
    total += time
    const file = path.basename(callFrame.url)
    const place = file === '' ? '' : `${file}:${callFrame.lineNumber + 1}`
    const key = `${callFrame.functionName} ${place}`
    const known = functions.get(key) ?? {
      name: callFrame.functionName || '(anonymous)',
      place,
      time: 0,
    }
    known.time += time
    functions.set(key, known)
  }
  const sorted = [...functions.values()].sort((one, other) => other.time - one.time)
  return sorted.map(({ name, place, time }) => ({ name, place, share: time / total }))
}
