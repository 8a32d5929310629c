/** What brokers do with the messages of a member that leaves its group is what `docs/many.md` says. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Broker } from './brokers.js'
import { type Fates, leaving, type Way, type Whose, ways } from './shares.js'
import { type SiteName, site } from './sites.js'
import { withoutBroker } from './target.js'

/** A broker that was measured. Where several are given, it is one or the other, from run to run. */
interface Known {
  readonly version: string
  readonly fates: { readonly [W in Way]: { readonly [K in keyof Fates[W]]: readonly Whose[] } }
}

const of = (inHand: string, waiting: string, later: string) => ({
  inHand: inHand.split(' or ') as Whose[],
  waiting: waiting.split(' or ') as Whose[],
  later: later.split(' or ') as Whose[],
})

const known: Readonly<Partial<Record<SiteName, Known>>> = {
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

function tableOfShares(): string[] {
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

it('the guide has the table', () => {
  const guide = readFileSync(new URL('../../docs/many.md', import.meta.url), 'utf8')
  expect(guide).toContain(tableOfShares().join('\n'))
})

for (const [name, { fates }] of Object.entries(known)) {
  const made = await site(name as SiteName)
  if ('missing' in made) withoutBroker(made.name, made.missing)
  else
    describe(`a member that leaves its group, on ${name}`, () => {
      let broker: Broker
      beforeAll(async () => {
        broker = await made.start('plain')
      }, 120_000)
      afterAll(() => broker?.stop())

      it.each(ways)('%s', { timeout: 60_000 }, async (way) => {
        const seen = await leaving(broker, way)
        expect(seen.later).toBeDefined()
        for (const what of ['inHand', 'waiting', 'later'] as const)
          if (seen[what] !== undefined)
            expect(fates[way][what], `${what}: ${seen[what]}`).toContain(seen[what])
      })
    })
}
