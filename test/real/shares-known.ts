/** What brokers do with the messages of a member that leaves its group, as `shares.ts` measures it; and the table of that in `docs/many.md`. */
import type { SiteName } from './programs/ordinary/sites.js'
import { type Fates, type Way, type Whose, ways } from './shares.js'

/** A broker that was measured. Where several are given, it is one or the other, from run to run. */
export interface Known {
  readonly version: string
  readonly fates: { readonly [W in Way]: { readonly [K in keyof Fates[W]]: readonly Whose[] } }
}

const of = (inHand: string, waiting: string, later: string) => ({
  inHand: inHand.split(' or ') as Whose[],
  waiting: waiting.split(' or ') as Whose[],
  later: later.split(' or ') as Whose[],
})

export const known: Readonly<Partial<Record<SiteName, Known>>> = {
  mosquitto: {
    version: '2.0.11',
    fates: {
      drains: of('itself', 'itself', 'others'),
      ends: of('nobody', 'nobody', 'others'),
      'is cut': of('itself', 'itself', 'both'),
    },
  },
  mochi: {
    version: '2.7.9',
    fates: {
      drains: of('itself', 'not all', 'others'),
      ends: of('nobody', 'nobody', 'others'),
      'is cut': of('itself', 'itself', 'both'),
    },
  },
  'HiveMQ CE': {
    version: '2025.5',
    fates: {
      drains: of('itself', 'itself or others or both or late', 'others or late'),
      ends: of('others', 'others', 'others'),
      'is cut': of('itself or others', 'others', 'others'),
    },
  },
  Artemis: {
    version: '2.40.0',
    fates: {
      drains: of('itself', 'others', 'others'),
      ends: of('others', 'others', 'others'),
      'is cut': of('others', 'others', 'others'),
    },
  },
  MemoryBroker: {
    version: '',
    fates: {
      drains: of('itself', 'itself', 'others'),
      ends: of('others', 'others', 'others'),
      'is cut': of('itself', 'itself', 'others'),
    },
  },
}

const words: Readonly<Record<Whose, string>> = {
  itself: 'itself',
  others: 'others',
  both: 'both',
  late: 'others, late',
  nobody: '**lost**',
  'not all': '**some lost**',
}
const wordOf = (whose: readonly Whose[]): string =>
  whose.length > 2 ? 'any of them, perhaps late' : whose.map((one) => words[one]).join(' or ')

/** The lines of the table. */
export function tableOfShares(): string[] {
  const rows = Object.entries(known).map(([name, { version, fates }]) => {
    const cells = ways.map((way) => {
      const { inHand, waiting, later } = fates[way]
      return [wordOf(inHand), wordOf(waiting), ...(way === 'is cut' ? [wordOf(later)] : [])].join(
        ' · ',
      )
    })
    return `| ${name === 'MemoryBroker' ? '`mqwire/testing`' : `${name} ${version}`} | ${cells.join(' | ')} |`
  })
  return [
    '| broker | drains: in hand · waiting | its session ends: in hand · waiting | is cut, comes back: in hand · waiting · meanwhile |',
    '| --- | --- | --- | --- |',
    ...rows,
  ]
}
