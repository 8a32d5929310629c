/**
 * What code for browsers must not hold: names that only Node has, and its modules.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { transform } from 'esbuild'

/** What a page must not refer to. */
export const nodeGlobals = [
  'Buffer',
  'process',
  'require',
  'global',
  'module',
  '__dirname',
  '__filename',
  'setImmediate',
]

/** For esbuild's `define`: each reference is replaced by a mark, so that a property or a word in a text is not taken for one. */
export const marks: Readonly<Record<string, string>> = Object.fromEntries(
  nodeGlobals.map((name) => [name, `found_${name}`]),
)

export function marked(code: string): string[] {
  return nodeGlobals.filter((name) => code.includes(`found_${name}`))
}

/** Everything of Node in a module: its globals, and `node:` where it begins a text. */
export async function nodeIn(code: string): Promise<string[]> {
  const { code: text } = await transform(code, { define: { ...marks }, format: 'esm' })
  return [...marked(text), ...(/["'`]node:/.test(text) ? ['node:'] : [])]
}

/** Everything of Node in the JavaScript below a folder, as `file: name`. Throws when there is none to look at. */
export async function nodeBelow(folder: string): Promise<string[]> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.js'))
  if (names.length === 0) throw new Error(`no JavaScript below ${folder}`)
  const found = await Promise.all(
    names.map(async (name) => ({
      name,
      what: await nodeIn(await readFile(path.join(folder, name), 'utf8')),
    })),
  )
  return found.flatMap(({ name, what }) => what.map((each) => `${name}: ${each}`))
}
