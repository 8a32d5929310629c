/**
 * How the rooms of the source tree hang together: circles of imports with types counted, ports and their members, classes, lengths of files.
 *
 * Pure functions over source text, so that the tests can show them a house that breaks the rule. `house.test.ts` applies them to the real one, and
 * `npm run house` prints what they find.
 */
import { createRequire } from 'node:module'
import path from 'node:path'
import type * as TypeScript from 'typescript-5.2'
import { importsOf, type Sources } from './source.js'

// The compiler of this project has no parser to call; the one that checks the declarations for old versions has.
const ts = createRequire(import.meta.url)('typescript-5.2') as typeof TypeScript

/** Files that reach each other by imports of any kind, the largest set first. A file that only imports itself is one of one. */
export function circles(sources: Sources): string[][] {
  const graph = new Map([...sources].map(([file, code]) => [file, targetsOf(file, code, sources)]))
  const reached = new Map([...graph.keys()].map((file) => [file, reach(file, graph)]))
  const seen = new Set<string>()
  const found: string[][] = []
  for (const [file, others] of reached) {
    if (seen.has(file) || !others.has(file)) continue
    const circle = [...others].filter((other) => reached.get(other)?.has(file))
    for (const member of circle) seen.add(member)
    found.push(circle.sort())
  }
  return found.sort((one, other) => other.length - one.length)
}

function targetsOf(file: string, code: string, sources: Sources): string[] {
  const relative = importsOf(code).filter(({ specifier }) => specifier.startsWith('.'))
  const targets = relative.map(({ specifier }) => path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts'))
  return [...new Set(targets)].filter((target) => sources.has(target))
}

function reach(start: string, graph: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set<string>()
  const open = [start]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const next of graph.get(file) ?? []) {
      if (found.has(next)) continue
      found.add(next)
      open.push(next)
    }
  }
  return found
}

/** The room of a file: its folder; of those in `src/client` itself, the client. */
export function roomOf(file: string): string {
  return path.posix.dirname(file)
}

/** Pairs of rooms that import each other, types counted. */
export function mutualRooms(sources: Sources): string[] {
  const pairs = new Set<string>()
  for (const [file, code] of sources) for (const target of targetsOf(file, code, sources)) pairs.add(`${roomOf(file)} ${roomOf(target)}`)
  const mutual = [...pairs].filter((pair) => {
    const [from = '', to = ''] = pair.split(' ')
    return from < to && pairs.has(`${to} ${from}`)
  })
  return mutual.sort()
}

/** A class or an interface, with the names of its members. */
export interface Shape {
  readonly file: string
  readonly name: string
  readonly members: readonly string[]
}

/** Every class of these files. An accessor pair is one member; constructors are none. */
export function classes(sources: Sources): Shape[] {
  return [...sources].flatMap(([file, code]) =>
    declarationsIn(file, code).flatMap((node) => {
      if (!ts.isClassDeclaration(node) || node.name === undefined) return []
      return [{ file, name: node.name.text, members: namesOf(node.members) }]
    }),
  )
}

/** Names that several classes of these files bear, each with where. */
export function repeatedClasses(sources: Sources): string[] {
  const places = new Map<string, string[]>()
  for (const { file, name } of classes(sources)) places.set(name, [...(places.get(name) ?? []), file])
  return [...places].filter(([, files]) => files.length > 1).map(([name, files]) => `${name}: ${files.join(', ')}`)
}

/** The ports: every interface in a file `ports.ts`, with what it extends in that file. */
export function ports(sources: Sources): Shape[] {
  return [...sources].filter(([file]) => path.posix.basename(file) === 'ports.ts').flatMap(([file, code]) => interfacesIn(file, code))
}

function interfacesIn(file: string, code: string): Shape[] {
  const found = declarationsIn(file, code).filter((node) => ts.isInterfaceDeclaration(node))
  const membersOf = (name: string): string[] => {
    const node = found.find((each) => each.name.text === name)
    const parents = node?.heritageClauses?.flatMap(({ types }) => types.map(({ expression }) => expression.getText())) ?? []
    return node === undefined ? [] : [...new Set([...namesOf(node.members), ...parents.flatMap(membersOf)])]
  }
  return found.map(({ name }) => ({ file, name: name.text, members: membersOf(name.text) }))
}

function declarationsIn(file: string, code: string): TypeScript.Statement[] {
  return [...ts.createSourceFile(file, code, ts.ScriptTarget.ES2022, true).statements]
}

function namesOf(members: readonly (TypeScript.ClassElement | TypeScript.TypeElement)[]): string[] {
  return [...new Set(members.flatMap(({ name }) => (name === undefined ? [] : [name.getText()])))]
}

/** Files by their number of lines, the longest first. */
export function lengths(sources: Sources): [file: string, lines: number][] {
  const all = [...sources].map(([file, code]): [string, number] => [file, code.split('\n').length - 1])
  return all.sort(([, one], [, other]) => other - one)
}
