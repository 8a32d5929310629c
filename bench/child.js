/**
 * Runs a program of this folder in a process of its own and gives the object that it printed.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

/**
 * @param {string} name file in `bench/programs`, or from `bench` on when it has a slash
 * @param {object} settings given as JSON
 * @param {{ flags?: string[], timeout?: number, folder?: string }} [options] flags of Node; milliseconds, default three minutes; where a copy of `bench` is
 */
export function runProgram(name, settings, options) {
  return start(name, settings, options).result
}

/**
 * Runs a program once in each folder, at the same time: each process does a round while the others wait, all on one core, so that what disturbs the
 * machine disturbs all. Who begins a round changes with each. Gives what they printed, in the order of the folders.
 */
export async function runInTurns(name, settings, folders, options) {
  const processes = folders.map((folder) =>
    start(name, { ...settings, turns: true }, { ...options, folder, core: 0 }),
  )
  const results = Promise.all(processes.map(({ result }) => result))
  results.catch(() => {
    for (const { child } of processes) child.kill('SIGKILL')
  })
  for (let round = 0; ; round++) {
    const waiting = await Promise.all(processes.map(({ waits }) => waits()))
    const order = processes.filter((_, index) => waiting[index])
    if (order.length === 0) return results
    for (const { go, waits } of round % 2 === 0 ? order : order.reverse()) {
      go()
      await waits()
    }
  }
}

/** The command that keeps a program on one core; the program itself where that cannot be. */
export function pinned(core, command) {
  const pinning = ['taskset', '-c', String(core)]
  return spawnSync(pinning[0], [...pinning.slice(1), 'true']).status === 0
    ? [...pinning, ...command]
    : command
}

function start(name, settings, { flags = [], timeout = 180_000, folder = here, core } = {}) {
  const program = path.join(folder, name.includes('/') ? name : `programs/${name}`)
  const command = [process.execPath, '--max-old-space-size=2000', ...flags, program]
  const [first, ...rest] = core === undefined ? command : pinned(core, command)
  const child = spawn(first, [...rest, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'pipe', settings.turns ? 'pipe' : 'ignore'],
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), timeout)
  let output = ''
  let errors = ''
  let [given, closed, wake] = [0, false, () => undefined]
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
    wake()
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors = (errors + text).slice(-4000)
  })
  child.stdio[3]?.on('error', () => undefined)
  // A process that takes turns prints an empty line when it waits for its next round, and begins it with a byte that it reads.
  const isWaiting = () => output.length - output.trimStart().length > given
  const waits = async () => {
    while (!isWaiting() && !closed)
      await new Promise((resolve) => {
        wake = resolve
      })
    return isWaiting()
  }
  const go = () => {
    given++
    child.stdio[3].write('.')
  }
  const result = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      closed = true
      wake()
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
  return { child, result, waits, go }
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
