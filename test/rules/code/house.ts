/** How the rooms of the source tree hang together: circles of imports with types counted, rooms that import each other, names of classes. */
import path from 'node:path'
import ts from 'typescript-5.2'
import { layerOf } from './layers.js'
import { importsOf, parsed, type Sources } from './source.js'

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
  const targets = relative.map(({ specifier }) =>
    path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts'),
  )
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

/** The folder of a file, or its layer where that is a few files of `src/client` itself. */
function roomOf(file: string): string {
  const folder = path.posix.dirname(file)
  return folder === 'client' ? (layerOf(file) ?? folder) : folder
}

/** Pairs of rooms that import each other, types counted. */
export function mutualRooms(sources: Sources): string[] {
  const pairs = new Set<string>()
  for (const [file, code] of sources)
    for (const target of targetsOf(file, code, sources))
      pairs.add(`${roomOf(file)} ${roomOf(target)}`)
  const mutual = [...pairs].filter((pair) => {
    const [from = '', to = ''] = pair.split(' ')
    return from < to && pairs.has(`${to} ${from}`)
  })
  return mutual.sort()
}

/** Names that several classes of these files bear, each with where. */
export function repeatedClasses(sources: Sources): string[] {
  const places = new Map<string, string[]>()
  for (const [file, code] of sources) {
    for (const node of parsed(code).statements) {
      if (!ts.isClassDeclaration(node) || node.name === undefined) continue
      places.set(node.name.text, [...(places.get(node.name.text) ?? []), file])
    }
  }
  return [...places]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => `${name}: ${files.join(', ')}`)
}
