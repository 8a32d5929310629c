/**
 * Mutants that no test can notice, each with its reason: `explained.json` beside this file.
 *
 * One is known by its file, the text of its line and the change, not by numbers of lines, so that sources may move on.
 */
import { readFileSync } from 'node:fs'
import type { RandomMutant } from './draw.js'

export interface Explained {
  readonly file: string
  /** The line as it stands in the source, without spaces around it. */
  readonly line: string
  /** The change, as the table prints it. */
  readonly change: string
  /** Why nobody can see it. */
  readonly reason: string
}

export function readExplained(from: string): Explained[] {
  return JSON.parse(readFileSync(from, 'utf8')) as Explained[]
}

/** The reason for one that survived, if there is any. */
export function reasonFor(explained: readonly Explained[], { file, lineText, change }: RandomMutant): string | undefined {
  return explained.find((each) => each.file === file && each.line === lineText && each.change === change)?.reason
}
