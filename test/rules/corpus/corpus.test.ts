/** The corpus itself: how large it is, that nothing in it is there twice, how it is balanced, and that it stands on its own feet. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { balanceOf, endNames, endsOf, tableOf } from './balance.js'
import { hex } from './bytes.js'
import type { Case } from './case.js'
import type { PacketName } from './facts.js'
import { corpus } from './index.js'
import { lines } from './main.js'
import { judge } from './oracle.js'
import { type RuleName, rules } from './rules.js'
import { shareOf } from './run/jobs.js'
import { statesOf } from './states.js'

const versions = [5, 4] as const

/** What two cases must not have in common. */
const signature = (each: Case): string => [each.type, each.special, ...endsOf(each)].join(' | ')

/** Keys that occur more than once. */
function doubles(keys: readonly string[]): string[] {
  const seen = new Set<string>()
  return keys.filter((key) => seen.size === seen.add(key).size)
}

/** How many cases of a packet type there are at least: set under what there was, so that a builder that loses its cases is noticed. */
const least: Readonly<Record<4 | 5, Readonly<Record<PacketName, number>>>> = {
  5: {
    ...{
      reserved: 30,
      connect: 10,
      connack: 570,
      publish: 420,
      puback: 220,
      pubrec: 225,
      pubrel: 210,
      pubcomp: 205,
    },
    ...{
      subscribe: 10,
      unsubscribe: 10,
      pingreq: 10,
      suback: 235,
      unsuback: 220,
      pingresp: 45,
      disconnect: 270,
      auth: 255,
    },
  },
  4: {
    ...{
      reserved: 30,
      connect: 10,
      connack: 90,
      publish: 80,
      puback: 45,
      pubrec: 40,
      pubrel: 35,
      pubcomp: 35,
    },
    ...{
      subscribe: 10,
      unsubscribe: 10,
      pingreq: 10,
      suback: 45,
      unsuback: 30,
      pingresp: 20,
      disconnect: 10,
      auth: 9,
    },
  },
}

describe('the corpus', () => {
  it('has 2,000 sequences of MQTT 5.0 and 300 of 3.1.1, and more', () => {
    expect(corpus(5).length).toBeGreaterThanOrEqual(2500)
    expect(corpus(4).length).toBeGreaterThanOrEqual(300)
  })

  it.each(versions)(
    'holds nothing twice, version %i: neither bytes, nor names, nor what is special together with how it ends',
    (version) => {
      const cases = corpus(version)
      expect(doubles(cases.map(({ bytes }) => hex([...bytes])))).toEqual([])
      expect(doubles(cases.map(({ name }) => name))).toEqual([])
      expect(doubles(cases.map(signature))).toEqual([])
      expect(cases.filter(({ bytes }) => bytes.length === 0)).toEqual([])
    },
  )

  it.each(versions)(
    'has no long rows of cases that differ in a number alone, version %i',
    (version) => {
      const families = new Map<string, number>()
      for (const each of corpus(version)) {
        // Codes and bytes, which are written as 0x.., are what such cases are about.
        const family = signature(each).replace(/\b(?<!x)\d[\d,^]*\b/g, '#')
        families.set(family, (families.get(family) ?? 0) + 1)
      }
      expect([...families].filter(([, count]) => count > 16)).toEqual([])
    },
  )

  it.each(versions)('has enough cases of each packet type, version %i', (version) => {
    const short = Object.entries(least[version]).filter(
      ([type, count]) => corpus(version).filter((each) => each.type === type).length < count,
    )
    expect(short).toEqual([])
  })

  it('breaks every rule, first of all, on its own', () => {
    const broken = new Set<RuleName>()
    for (const version of versions) {
      for (const { meanings } of corpus(version)) {
        for (const state of statesOf(version)) {
          const { rule } = judge(version, meanings, state)
          if (rule !== undefined) broken.add(rule)
        }
      }
    }
    expect(Object.keys(rules).filter((name) => !broken.has(name as RuleName))).toEqual([])
  })

  it('knows every end that it names', () => {
    const seen = new Set(versions.flatMap((version) => corpus(version).flatMap(endsOf)))
    // No packet can exceed a Receive Maximum before it counts.
    expect(endNames.filter((end) => !seen.has(end))).toEqual(['silent 93'])
    expect([...seen].filter((end) => !endNames.some((name) => name === end))).toEqual([])
  })

  it('is the same each time, and readable as lines of JSON', () => {
    const [first = '', ...rest] = [...lines()]
    expect(rest.length + 1).toBe(corpus(5).length + corpus(4).length)
    expect(JSON.parse(first)).toMatchObject({
      version: 5,
      packet: 'reserved',
      hex: '00',
      expected: { idle: { end: '81', announced: 0x81 } },
    })
    expect(tableOf(balanceOf(corpus(5)))[0]).toMatch(/^packet +state +open +waiting/)
  })

  it('gives the dear transports a share in which every packet type meets every state', () => {
    for (const version of versions) {
      const types = new Set(corpus(version).map(({ type }) => type))
      for (const offset of [0, 5]) {
        const share = shareOf(version, offset)
        expect(new Set(share.map(({ sequence }) => sequence.name)).size).toBe(
          corpus(version).length,
        )
        const met = new Set(share.map(({ sequence, state }) => `${sequence.type} ${state.name}`))
        expect(met.size).toBe(types.size * statesOf(version).length)
        expect(share.filter(({ cuts }) => cuts.length > 0).length).toBeGreaterThan(share.length / 3)
      }
    }
  })

  it('states its facts without the code that it tries', () => {
    const folder = fileURLToPath(new URL('.', import.meta.url))
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
    )
    const imports = (name: string): boolean =>
      /from '[^']*\/src\//.test(readFileSync(`${folder}/${name}`, 'utf8'))
    expect(files.length).toBeGreaterThan(20)
    expect(files.filter((name) => imports(name) && !/^run[/\\]/.test(name))).toEqual([])
    // The hearing ear, the script and the verdict are part of the statement, too.
    expect(files.filter((name) => imports(name)).sort()).toEqual([
      'run/core.ts',
      'run/enter.ts',
      'run/memory.ts',
      'run/network.ts',
    ])
  })
})
