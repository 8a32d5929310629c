/**
 * Every program of the repository answers `--help`, and refuses an option that it does not know: those that scripts of package.json name, the other
 * programs of `.ci` and `bench`, and the examples that take arguments. No test here may start what a program does.
 */
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

/** Runs a program to its end, which has to come soon. */
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

describe('the programs', () => {
  it('are found', () => {
    const some = [
      '.ci/lab.mjs',
      '.ci/setup.mjs',
      'bench/main.js',
      'bench/endurance.js',
      'examples/demo/main.js',
      'examples/simulator/serve.js',
    ]
    expect(programs).toEqual(
      expect.arrayContaining([...some, 'examples/dashboard/serve.js', 'examples/device.js']),
    )
    expect(programs.length).toBeGreaterThan(20)
  })
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

describe('what is refused', () => {
  it.each([
    ['.ci/lab.mjs', '--replya', 'did you mean --replay?'],
    ['bench/main.js', '--onyl', 'did you mean --only?'],
    ['examples/demo/main.js', '--device', 'did you mean --devices?'],
    ['.ci/setup.mjs', '--istall', 'did you mean --install?'],
  ])('by %s: %s, with the nearest one', async (file, flag, meant) => {
    expect((await run(file, flag)).errors).toContain(meant)
  })

  it('is a number that is none, a value where none belongs, and one that is missing', async () => {
    expect((await run('.ci/lab.mjs', '--seed', 'many')).errors).toBe(
      "--seed takes a whole number of at least 0, not 'many'; --help shows what there is.\n",
    )
    expect((await run('.ci/size.mjs', '--update=3')).errors).toBe(
      '--update takes no value; --help shows what there is.\n',
    )
    expect((await run('.ci/lab.mjs', '--minutes', '--seed')).errors).toBe(
      '--minutes needs a value; --help shows what there is.\n',
    )
    expect((await run('.ci/size.mjs', 'now')).errors).toBe(
      "Unexpected argument 'now'; --help shows what there is.\n",
    )
  })
})
