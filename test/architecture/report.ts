/**
 * What `npm run house` prints, and the limits. Text only; the measuring is in `house.ts` and `walks.ts`.
 */
import { circles, classes, lengths, mutualRooms, ports, type Shape } from './house.js'
import { readSources, type Sources } from './source.js'

/** Most that there may be. Those of classes, lines and crossings are where they stand: they go down, never up. */
export const limits = { circle: 0, mutual: 0, port: 8, class: 63, lines: 458, inbound: 39, outbound: 67 } as const

/** One line of the report. */
interface Measure {
  readonly name: keyof typeof limits
  readonly what: string
  readonly value: number
}

/** The sources that ship with a client: the doubles for tests are apart. */
export function clientSources(sources: Sources): Sources {
  return new Map([...sources].filter(([file]) => !file.startsWith('testing/')))
}

/** Everything that can be told from the sources alone. */
export function measures(sources: Sources): Measure[] {
  const [largest = []] = circles(sources)
  const largestOf = (shapes: readonly Shape[]): Shape | undefined => [...shapes].sort((one, other) => other.members.length - one.members.length)[0]
  const port = largestOf(ports(sources))
  const biggest = largestOf(classes(sources))
  const [[longest, lines] = ['', 0]] = lengths(sources)
  const mutual = mutualRooms(sources)
  return [
    {
      name: 'circle',
      what: `files in the largest circle of imports, types counted${largest.map((file) => `\n    ${file}`).join('')}`,
      value: largest.length,
    },
    { name: 'mutual', what: `pairs of rooms that import each other${mutual.map((pair) => `\n    ${pair}`).join('')}`, value: mutual.length },
    { name: 'port', what: `members of the largest port (${port?.name} of ${port?.file})`, value: port?.members.length ?? 0 },
    { name: 'class', what: `members of the largest class (${biggest?.name} of ${biggest?.file})`, value: biggest?.members.length ?? 0 },
    { name: 'lines', what: `lines of the longest file (${longest})`, value: lines },
  ]
}

/** The whole report, and the names of what is over its limit. */
export function report(
  checkout: string,
  inbound: readonly string[],
  outbound: readonly string[],
): { readonly lines: string[]; readonly over: string[] } {
  const sources = clientSources(readSources(checkout))
  const all: Measure[] = [
    ...measures(sources),
    { name: 'inbound', what: 'crossings of a PUBLISH from the socket to the loop and its PUBACK back', value: inbound.length },
    { name: 'outbound', what: 'crossings of a publish at QoS 2, from the call to its receipt', value: outbound.length },
  ]
  const lines = all.map(({ name, what, value }) => `${String(value).padStart(4)} of ${limits[name]}  ${what}`)
  const table = ports(sources).map(
    ({ file, name, members }) => `${String(members.length).padStart(4)}  ${file.replace('client/', '')} ${name}: ${members.join(', ')}`,
  )
  const walk = (title: string, crossings: readonly string[]): string[] => ['', title, ...counted(crossings)]
  const over = all.filter(({ name, value }) => value > limits[name]).map(({ name }) => name)
  return { lines: [...lines, '', 'ports and their members', ...table, ...walk('in', inbound), ...walk('out', outbound)], over }
}

function counted(crossings: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const crossing of crossings) counts.set(crossing, (counts.get(crossing) ?? 0) + 1)
  return [...counts].map(([crossing, count]) => `${String(count).padStart(4)}  ${crossing}`)
}
