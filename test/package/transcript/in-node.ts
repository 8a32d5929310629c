/** Runs programs with Node and its like, in a project that has nothing but the installed package, and gives what they print. */
import { run, writeFiles } from '../fixture.js'
import type { Servers } from './servers.js'

/** A program that runs modules: its file, and what stands before the name of the module. */
export interface Runner {
  readonly executable: string
  readonly flags: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

export const thisNode: Runner = { executable: process.execPath, flags: [] }

/** What a program printed, on both streams, with everything masked that differs from one machine, run or version to the next. */
export async function printed(
  folder: string,
  servers: Servers,
  name: string,
  code: string,
  { executable, flags, env }: Runner = thisNode,
): Promise<string> {
  await writeFiles(folder, { [name]: servers.real(code) })
  const { output } = await run(executable, [...flags, name], folder, 30_000, {
    ...process.env,
    ...env,
  })
  return masked(servers.masked(output), folder) || '(nothing)'
}

function masked(text: string, folder: string): string {
  return (
    text
      .replaceAll(folder, '/app')
      // How Node says that nobody caught it differs with its version.
      .replace(/^(?:node|file):.*:\d+\n.*\n *\^\n\n/, '')
      .replace(/\n\nNode\.js v.*$/, '')
      .replace(/^( *(?:port|errno):) -?\d+/gm, '$1 …')
      .replace(/ \(line \d+ column \d+\)/g, '')
      .replace(/; if the root CA is installed locally.*(?=\])/g, '')
      .replace(/\b[0-9A-F]{8,16}:error:.*$/gm, '…')
      .replace(/\((?:node:|ext:|native:)[^)]*\)/g, '(…)')
      .replace(/\b(?:node|ext):\S+:\d+:\d+/g, '…')
      .replace(/(subscriptionIdentifiers?:? (?:\[ ?)?)\d+/g, '$1…')
  )
}
