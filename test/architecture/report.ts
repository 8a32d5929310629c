/**
 * What `npm run house` prints, and the limits. Text only; the measuring is in `house.ts` and `walks.ts`.
 */
import { circles, classes, lengths, mutualRooms, ports, type Shape } from './house.js'
import { readSources, type Sources } from './source.js'

/** Most that there may be. They go down, never up. */
export const limits = { circle: 0, mutual: 0, port: 8, class: 30, lines: 400, inbound: 20, outbound: 25 } as const

/** The same for what is in `testing/` alone. */
export const testingLimits = { class: 30, lines: 400 } as const

/** One line of the report. */
interface Measure {
  readonly name: string
  readonly what: string
  readonly value: number
  readonly limit: number
}

/** Everything that can be told from the sources alone. */
export function measures(sources: Sources): Measure[] {
  const [largest = []] = circles(sources)
  const port = largestOf(ports(sources))
  const mutual = mutualRooms(sources)
  const testing = new Map([...sources].filter(([file]) => file.startsWith('testing/')))
  return [
    {
      name: 'circle',
      what: `files in the largest circle of imports, types counted${largest.map((file) => `\n    ${file}`).join('')}`,
      value: largest.length,
      limit: limits.circle,
    },
    {
      name: 'mutual',
      what: `pairs of rooms that import each other${mutual.map((pair) => `\n    ${pair}`).join('')}`,
      value: mutual.length,
      limit: limits.mutual,
    },
    { name: 'port', what: `members of the largest port (${port?.name} of ${port?.file})`, value: port?.members.length ?? 0, limit: limits.port },
    ...sizes(sources, '', limits),
    ...sizes(testing, 'testing ', testingLimits),
  ]
}

/** The largest class and the longest file. */
function sizes(sources: Sources, prefix: string, most: { readonly class: number; readonly lines: number }): Measure[] {
  const biggest = largestOf(classes(sources))
  const [[longest, lines] = ['', 0]] = lengths(sources)
  const what = `members of the largest class (${biggest?.name} of ${biggest?.file})`
  return [
    { name: `${prefix}class`, what, value: biggest?.members.length ?? 0, limit: most.class },
    { name: `${prefix}lines`, what: `lines of the longest file (${longest})`, value: lines, limit: most.lines },
  ]
}

function largestOf(shapes: readonly Shape[]): Shape | undefined {
  return [...shapes].sort((one, other) => other.members.length - one.members.length)[0]
}

/** The whole report, and the names of what is over its limit. */
export function report(
  checkout: string,
  inbound: readonly string[],
  outbound: readonly string[],
): { readonly lines: string[]; readonly over: string[] } {
  const sources = readSources(checkout)
  const all: Measure[] = [
    ...measures(sources),
    {
      name: 'inbound',
      what: 'crossings of a PUBLISH from the socket to the loop and its PUBACK back',
      value: inbound.length,
      limit: limits.inbound,
    },
    { name: 'outbound', what: 'crossings of a publish at QoS 2, from the call to its receipt', value: outbound.length, limit: limits.outbound },
  ]
  const lines = all.map(({ what, value, limit }) => `${String(value).padStart(4)} of ${limit}  ${what}`)
  const table = ports(sources).map(
    ({ file, name, members }) => `${String(members.length).padStart(4)}  ${file.replace('client/', '')} ${name}: ${members.join(', ')}`,
  )
  const walk = (title: string, crossings: readonly string[]): string[] => ['', title, ...counted(crossings)]
  const over = all.filter(({ value, limit }) => value > limit).map(({ name }) => name)
  return { lines: [...lines, '', 'ports and their members', ...table, ...walk('in', inbound), ...walk('out', outbound)], over }
}

function counted(crossings: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const crossing of crossings) counts.set(crossing, (counts.get(crossing) ?? 0) + 1)
  return [...counts].map(([crossing, count]) => `${String(count).padStart(4)}  ${crossing}`)
}
