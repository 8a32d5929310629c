/** Every program of the repository answers `--help`, and refuses an option that it does not know. No test here may start what a program does. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { requireDist, root } from './fixture.js'

beforeAll(requireDist)

const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** The files that the scripts run, without programs of others. */
function ofScripts(): string[] {
  const words = Object.values(scripts).flatMap((script) => script.split(' '))
  return words.filter((word) => /^(?:\.ci|bench|examples)\/.*\.m?js$/.test(word))
}

/** The files below the folders that read the arguments of their process. */
function readers(): string[] {
  const files = ['.ci', 'bench', 'examples'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
  )
  const programs = files.filter((file) => /\.m?js$/.test(file) && !file.includes('node_modules'))
  return programs.filter((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    return (
      /\bargumentsOf\(|process\.argv\.slice\(2/.test(text) &&
      !/export function argumentsOf/.test(text)
    )
  })
}

const programs = [...new Set([...ofScripts(), ...readers()])].sort()

interface Ending {
  readonly code: number | null
  readonly out: string
  readonly errors: string
}

function run(file: string, ...args: string[]): Promise<Ending> {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: root,
    timeout: 20_000,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, errors })))
}

it('the programs are found', () => {
  const some = ['.ci/lab.mjs', 'bench/main.js', 'examples/demo/main.js', 'examples/device.js']
  expect(programs).toEqual(expect.arrayContaining(some))
  expect(programs.length).toBeGreaterThan(20)
})

describe.concurrent.each(programs)('%s', (file) => {
  it('prints its usage', async ({ expect }) => {
    const { code, out, errors } = await run(file, '--help')
    expect(errors).toBe('')
    expect(out).toMatch(/^Usage: (?:npm|node) /)
    expect(out.split('\n').length).toBeGreaterThan(2)
    expect(code).toBe(0)
  })

  it('refuses an option that it does not know', async ({ expect }) => {
    const { code, out, errors } = await run(file, '--no-such-flag')
    expect(errors).toMatch(/^[^\n]*'--no-such-flag'[^\n]*--help[^\n]*\n$/)
    expect(errors.length).toBeLessThan(150)
    expect(out).toBe('')
    expect(code).toBe(2)
  })
})

it.each([
  ['.ci/lab.mjs', ['--replya'], 'did you mean --replay?'],
  ['.ci/lab.mjs', ['--seed', 'many'], "--seed takes a whole number of at least 0, not 'many';"],
  ['.ci/lab.mjs', ['--minutes', '--seed'], '--minutes needs a value;'],
  ['.ci/size.mjs', ['--update=3'], '--update takes no value;'],
  ['.ci/size.mjs', ['now'], "Unexpected argument 'now';"],
])('%s %j: %s', async (file, given, said) =>
  expect((await run(file, ...given)).errors).toContain(said),
)
