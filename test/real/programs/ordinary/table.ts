/** Lines and tables of what cells showed. Pure. */
import { verdictOf } from './expectations.js'
import type { Result } from './run.js'
import type { Missing, Site } from './sites.js'
import type { Program } from './world.js'

function sums(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, times]) => `${times} × ${what}`)
    .join('; ')
}

/** What the wire showed, as far as it is worth a word. */
export function wireOf({ seen }: Result): string {
  if (seen.connections === 0) return ''
  const parts = [
    `down ${seen.down}+${seen.downDup} settled ${seen.downSettled} q0 ${seen.downZero}`,
    `up ${seen.up}+${seen.upDup} settled ${seen.upSettled}`,
  ]
  parts.push(
    `open ≤ ${seen.mostOpen}${seen.announced > 0 ? ` of ${seen.announced}` : ''}, left ${seen.leftOpen} (${seen.leftToBroker} to the broker)`,
  )
  if (seen.exceeded > 0) parts.push(`exceeded on ${seen.exceeded} connections`)
  if (Object.keys(seen.clientSaid).length > 0)
    parts.push(`client's DISCONNECT ${sums(seen.clientSaid)}`)
  if (Object.keys(seen.brokerSaid).length > 0)
    parts.push(`broker's DISCONNECT ${sums(seen.brokerSaid)}`)
  parts.push(`ended first by client ${seen.endedByClient}, by broker ${seen.endedByBroker}`)
  if (Object.keys(seen.odd).length > 0) parts.push(`broker ${sums(seen.odd)}`)
  return parts.join(', ')
}

const marks = { passes: 'ok  ', fails: 'FAIL', broker: 'brkr', absent: 'none' } as const

/** One cell in a few lines. */
export function lineOf(result: Result): string {
  const { program, party, broker, transport, window, figures } = result
  const verdict = verdictOf(result)
  const where = `${broker} ${transport} window ${window ?? 'default'}`
  const counts = `sent ${figures.sent}, delivered ${figures.delivered}/${figures.due}, lost ${figures.lost}, twice ${figures.twice}, connections ${figures.connections}`
  const measured = Object.entries(figures.measured ?? {}).map(
    ([what, value]) => ` · ${what} ${value}`,
  )
  const lines = [
    `${marks[verdict.word]} ${program} · ${party} · ${where} · ${counts} · ${figures.milliseconds} ms, ${figures.megabytes} MB${measured.join('')}`,
  ]
  if ('reason' in verdict) lines.push(`       ${verdict.reason}`)
  if (figures.failures.length > 0) {
    lines.push(...figures.failures.slice(0, 6).map((failure) => `       ${failure}`))
    lines.push(
      `       by us ${sums(figures.endedByUs) || 'none'} | by peer ${sums(figures.endedByPeer) || 'none'}`,
      `       wire: ${wireOf(result)}`,
    )
  }
  return lines.join('\n')
}

/** Footnotes, numbered in the order in which they are asked for. */
class Notes {
  readonly texts: string[] = []

  mark(text: string): string {
    if (!this.texts.includes(text)) this.texts.push(text)
    return `[${this.texts.indexOf(text) + 1}]`
  }
}

/** All transports and windows of one program on one broker. */
function cell(results: readonly Result[], notes: Notes): string {
  if (results.length === 0) return '–'
  const groups = new Map<string, string[]>()
  for (const result of results) {
    const verdict = verdictOf(result)
    const mark =
      'reason' in verdict
        ? `${verdict.word === 'absent' ? 'not offered' : 'broker'} ${notes.mark(verdict.reason)}`
        : verdict.word
    const shown =
      verdict.word === 'fails'
        ? `**fails** (${result.figures.delivered}/${result.figures.due})`
        : mark
    groups.set(shown, [
      ...(groups.get(shown) ?? []),
      `${result.transport === 'TCP' ? '' : `${result.transport} `}${result.window ?? 'default'}`,
    ])
  }
  const [only] = groups.keys()
  if (groups.size === 1 && only !== undefined) return only
  return [...groups].map(([shown, where]) => `${shown}: ${where.join(', ')}`).join('; ')
}

function rows(
  programs: readonly Program[],
  results: readonly Result[],
  party: Result['party'],
  sites: readonly string[],
  notes: Notes,
): string[] {
  return programs.flatMap(({ name, title }) => {
    const own = results.filter((result) => result.program === name && result.party === party)
    if (own.length === 0) return []
    const cells = sites.map((site) =>
      cell(
        own.filter(({ broker }) => broker === site),
        notes,
      ),
    )
    return [`| **${name}**: ${title} | ${cells.join(' | ')} |`]
  })
}

function speeds(results: readonly Result[], sites: readonly string[]): string[] {
  const kinds = [
    ...new Set(
      results.flatMap(({ figures }) =>
        Object.keys(figures.measured ?? {}).filter((what) => what.startsWith('messages/s')),
      ),
    ),
  ]
  return kinds.flatMap((kind) =>
    (['mqwire', 'MQTT.js'] as const).map((party) => {
      const of = (site: string): string => {
        const found = results.filter(
          (result) =>
            result.broker === site &&
            result.party === party &&
            result.transport === 'TCP' &&
            result.window === undefined,
        )
        return found.flatMap(({ figures }) => figures.measured?.[kind] ?? []).join(', ') || '–'
      }
      return `| ${kind}, ${party} | ${sites.map(of).join(' | ')} |`
    }),
  )
}

/** MATRIX.md. */
export function table(
  programs: readonly Program[],
  results: readonly Result[],
  sites: readonly (Site | Missing)[],
): string {
  const names = sites.map(({ name }) => name)
  const notes = new Notes()
  const header = (first: string): string[] => [
    `| ${first} | ${names.join(' | ')} |`,
    `| --- |${names.map(() => ' --- |').join('')}`,
  ]
  const versions = sites.map(
    (site) => `${site.name} ${'version' in site ? site.version : '(not run)'}`,
  )
  const ours = rows(programs, results, 'mqwire', names, notes)
  const theirs = rows(programs, results, 'MQTT.js', names, notes)
  return [
    '# Ordinary programs × brokers',
    '',
    'Written by `npm run lab -- brokers programs all` from what the programs of `ordinary/` showed; not to be edited by hand.',
    '',
    `Brokers: ${versions.join(', ')}. Default options; TCP with each receiver's window at 1, 3, 10, default and 65,535 where a program receives much, and`,
    'WebSocket with the default; MQTT.js with its own default window.',
    '',
    '*passes*: nothing lost, nothing twice (but at QoS 1 across a kill), no connection ended by the client. *broker*: it fails, and a tap on the wire shows that the',
    'broker did it. *not offered*: the broker need not offer it and does not. Where transports and windows differ, they are named.',
    '',
    '## mqwire',
    '',
    ...header('program'),
    ...ours,
    '',
    '## MQTT.js, the same work',
    '',
    ...header('program'),
    ...theirs,
    '',
    '## Throughput',
    '',
    ...header('messages of 100 bytes, one sender, one receiver'),
    ...speeds(results, names),
    '',
    '## Notes',
    '',
    ...notes.texts.map((text, index) => `${index + 1}. ${text}`),
    '',
  ].join('\n')
}
