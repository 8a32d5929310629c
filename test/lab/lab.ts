/** What a part of the lab is: a file of this folder with `about`, `minutes` and `run`, which `.ci/lab.mjs` runs. It stays a thin front for what lies in `test/`. */
import type { Plugin } from 'esbuild'

/** What a part gets. */
export interface Lab {
  /** The folder of the checkout. */
  readonly root: string
  /** After this many minutes a part begins nothing new. */
  readonly minutes: number
  /** The same seed does the same work. */
  readonly seed: number
  /** What the command of a finding gives back, to repeat it. */
  readonly replay: string | undefined
  /** The words behind the name of the part: a variant, or what to choose. */
  readonly words: readonly string[]
  /** Bundles a module of `test` or `src` with what it imports; gives the path of the result. */
  bundle(
    entry: string,
    options?: { readonly plugins?: readonly Plugin[]; readonly name?: string },
  ): Promise<string>
  /** Runs files of tests (or those of a project) to their end. Their failures are findings. */
  vitest(files: readonly string[], options?: Settings): Promise<Result>
  /** Runs a program of Node in the checkout to its end, and prints what it prints. */
  node(
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<{ readonly code: number | null; readonly output: string }>
  /** Prints a line. */
  say(text: string): void
}

/** How tests are run. */
export interface Settings {
  readonly env?: Readonly<Record<string, string>>
  /** Default: the project `lab` of `test/vitest.config.ts`. */
  readonly args?: readonly string[]
  /** The file that gets the report of vitest as JSON, for who reads more in it. */
  readonly report?: string
}

/** What was found, and the command that shows it again. */
export interface Finding {
  readonly what: string
  readonly command: string
}

/** What a part did. */
export interface Result {
  /** Counts, as `20,000 seeds`. */
  readonly did: string
  readonly findings: readonly Finding[]
  /** What could not be done here, and why. */
  readonly skipped?: string
}

/** Several results of one part as one. */
export function together(...results: readonly Result[]): Result {
  const skipped = results.flatMap((each) => each.skipped ?? []).join('; ')
  return {
    did: results.map(({ did }) => did).join('; '),
    findings: results.flatMap(({ findings }) => findings),
    ...(skipped !== '' && { skipped }),
  }
}

/** True while a part may begin something new. */
export function within({ minutes }: Lab, began = performance.now()): () => boolean {
  return () => performance.now() - began < minutes * 60_000
}
