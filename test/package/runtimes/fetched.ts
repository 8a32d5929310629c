/**
 * What `test/lab/runtimes.ts` fetched before these suites: programs to run the package with, and packages to look at it with.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { expect, it } from 'vitest'

/** A program, or the reason why it could not be had. */
export interface Runtime {
  readonly name: string
  readonly kind: 'node' | 'deno' | 'bun'
  readonly version: string
  readonly executable?: string
  readonly reason?: string
}

/** What stands before the name of a program. */
export const flags: Readonly<Record<Runtime['kind'], readonly string[]>> = {
  node: ['--unhandled-rejections=strict'],
  deno: ['run', '--allow-all', '--no-remote', '--node-modules-dir=manual'],
  bun: ['run', '--no-install'],
}

export function storesIn(folder: string): NodeJS.ProcessEnv {
  return {
    DENO_DIR: path.join(folder, 'deno'),
    DENO_NO_UPDATE_CHECK: '1',
    BUN_INSTALL: path.join(folder, 'bun'),
  }
}

interface Packages {
  readonly folder?: string
  readonly reason?: string
}

export interface Fetched {
  readonly runtimes: readonly Runtime[]
  /** The folder of the tools' package.json; a reason when they could not be had. */
  readonly tools: Packages
  /** Lists of packages below `.ci/tools`, by name; most are fetched with the word `all` only. */
  readonly frameworks?: Readonly<Record<string, Packages>>
}

const file = process.env['MQWIRE_RUNTIMES']
if (file === undefined) throw new Error('npm run lab -- runtimes fetches what these suites need')
const fetched = JSON.parse(readFileSync(file, 'utf8')) as Fetched

/** The runtimes, oldest first. */
export const runtimes = fetched.runtimes

/** Says what is left out, and why. In CI that is a failure. */
export function leftOut(what: string, reason = 'no reason given'): void {
  console.warn(`${what} is left out: ${reason}`)
  it(`${what} is left out: ${reason}`, () => expect(process.env['CI']).toBeUndefined())
}

/** Defines tests that need the fetched packages, given a `require` that finds them. */
export function withTools(define: (tool: NodeJS.Require) => void): void {
  const { folder, reason } = fetched.tools
  if (folder === undefined)
    leftOut('what needs bundlers, frameworks, arethetypeswrong and typedoc', reason)
  else define(createRequire(path.join(folder, 'package.json')))
}

/** Defines tests that need a framework, or another list of packages, given its folder. */
export function withFramework(name: string, define: (folder: string) => void): void {
  const { folder, reason } = fetched.frameworks?.[name] ?? {}
  if (folder !== undefined) define(folder)
  else leftOut(name, reason)
}
