/**
 * What the project's own texts name: files, folders and globs of the checkout, and scripts of package.json. A check whose object has moved still says
 * that all is well; that its list names nothing any more is found here.
 *
 * It reads text, wherever a path stands: in lists, settings, scripts, comments. Pure but for `allFiles`.
 */
import { readdirSync } from 'node:fs'
import path from 'node:path'

const leftOut = new Set(['node_modules', 'dist', 'coverage', 'docs-site', '.git'])

/** Every file of the checkout that is not made, as a path below its root. */
export function allFiles(root: string, below = ''): string[] {
  const entries = readdirSync(path.join(root, below), { withFileTypes: true }).filter(({ name }) => !leftOut.has(name))
  return entries.flatMap((entry) => (entry.isDirectory() ? allFiles(root, `${below}${entry.name}/`) : entry.isFile() ? [below + entry.name] : []))
}

/** The files that a path, a folder or a glob (`*`, `**`) means. */
export function filesOf(name: string, files: readonly string[]): string[] {
  const parts = name.replace(/^!|\/$/g, '').split(/(\*\*\/?|\*)/)
  const steps = parts.map((part) => (part === '*' ? '[^/]*' : part.startsWith('**') ? '.*' : part.replace(/[.+^$(){}|[\]\\?]/g, '\\$&')))
  const pattern = new RegExp(`^${steps.join('')}(?:/|$)`)
  return files.filter((file) => pattern.test(file))
}

// Anywhere in a text: from the root on.
const rooted = /(?<![\w./@<>-])(?:\.ci|bench|docs|examples|src|test)\/[\w.*/-]*[\w*]/g
// In quotes: a source (declarations are built) below src, test or the folder of the text; or a folder there, where its first step is one that there is.
const quoted = /(['"`])([a-z][\w-]*\/(?:[\w*-]+\/)*[\w.*-]+\.(?:ts|as)|[a-z][\w-]*\/(?:[\w-]+\/)*)\1/g
const script = /\bnpm (?:-s )?run (?:-s )?([\w:-]+)/g

/** What the text of a file names that is not there: paths, globs, and scripts behind `npm run`. */
export function deadNames(file: string, text: string, files: readonly string[], scripts: readonly string[]): string[] {
  const folders = new Set(files.map((each) => each.split('/')[1]))
  const below = [...text.matchAll(quoted)].map(([, , name = '']) => name).filter((name) => !name.endsWith('.d.ts'))
  const names = [...text.matchAll(rooted)].map(([name]) => name)
  names.push(...below.filter((name) => !name.endsWith('/') || folders.has(name.split('/')[0])))
  const places = ['.', 'src', 'test', path.posix.dirname(file)]
  const dead = names.filter((name) => !places.some((place) => filesOf(path.posix.join(place, name), files).length > 0))
  const unknown = [...text.matchAll(script)].flatMap(([all, name = '']) => (scripts.includes(name) ? [] : [all]))
  return [...new Set([...dead, ...unknown])]
}
