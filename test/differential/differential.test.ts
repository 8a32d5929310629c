/**
 * The differential run of the codec: 10,000 packets (100,000 with MQWIRE_LONG) beside three foreign codecs, planted defects, and that a finding is told.
 *
 * The runs are child processes of the runner. Without Go there is one foreign codec only: what needs the others is skipped, with the reason printed.
 */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { buildGo } from '../interop/building.js'
import { node, root } from '../package/fixture.js'
import { defects } from './defects.js'
import { batchSize, generate } from './generate.js'
import { judgements } from './judged.js'
import { groupedPairs, normalizedPacket, places } from './normalize.js'

const packets = process.env['MQWIRE_LONG'] === undefined ? 10_000 : 100_000
const runner = fileURLToPath(new URL('../../.ci/differential.mjs', import.meta.url))

/** Runs the runner; gives its exit code, what it printed, and the last line of that. */
async function run(...args: string[]): Promise<{ code: number; text: string; last: string }> {
  const { code, output } = await node([runner, ...args], root, 600_000)
  return { code, text: output, last: output.split('\n').at(-1) ?? '' }
}

const { missing } = await buildGo('../differential/foreign')
if (missing !== undefined) console.warn(`The codecs written in Go are not compared with: ${missing}`)

describe('the codec beside others', () => {
  test('packets of seed 1: every difference is judged, every judgement applies', { timeout: 300_000 }, async ({ skip }) => {
    if (missing !== undefined) skip(missing)
    const { code, text, last } = await run('--packets', String(packets))
    expect(last, text).toMatch(new RegExp(`^differential: ${packets} packets, 3 foreign codecs, \\d{4,} judged, 0 findings, [\\d.]+ s$`))
    expect(Number(/(\d+) judged/.exec(last)?.[1])).toBeGreaterThan(packets / 10)
    expect(text).not.toContain('NEVER APPLIED')
    expect(code).toBe(0)
  })

  test('a comparison that has been seen to fail: each planted defect is found by the codec that is named for it', { timeout: 120_000 }, async ({
    skip,
  }) => {
    if (missing !== undefined) skip(missing)
    const { code, text, last } = await run('--defects')
    expect(last, text).toBe(`differential: ${defects.length} defects, 0 not found`)
    expect(text).not.toContain('NOT FOUND')
    expect(code).toBe(0)
  })

  test('a finding is told with seed, number, bytes and verdicts, and the runner says no', { timeout: 120_000 }, async () => {
    const options = ['--packets', '1000', '--seed', '3', '--only', 'mqtt-packet']
    const { code, text, last } = await run(...options, '--defect', 'two properties have changed places, in both directions')
    expect(text).toMatch(/^FINDING mqtt-packet field: connack properties.wildcardSubscriptionAvailable \(\d+ times\): /m)
    expect(text).toMatch(/^ {2}seed 3, packet \d+ \(\w+\), version 5 from the server\n {2}20[0-9a-f]+$/m)
    for (const name of ['ours', 'standard', 'mqtt-packet']) expect(text).toMatch(new RegExp(`^  ${name}: accepted: \\{`, 'm'))
    expect(last).toMatch(/^differential: 1000 packets, 1 foreign codecs, \d+ judged, [1-9]\d* findings, /)
    expect(code).toBe(1)
  })

  test('without the others it compares with mqtt-packet alone', { timeout: 120_000 }, async () => {
    const { code, last, text } = await run('--packets', '3000', '--seed', '5', '--only', 'mqtt-packet')
    expect(last, text).toMatch(/^differential: 3000 packets, 1 foreign codecs, \d+ judged, 0 findings, /)
    expect(code).toBe(0)
    const unknown = await run('--only', 'nobody')
    expect(unknown.code).not.toBe(0)
  })
})

describe('the packets of a seed', () => {
  test('are the same each time, and others for another seed or batch', () => {
    const bytes = (seed: number, batch: number): string[] => generate(seed, batch).map((each) => Buffer.from(each.bytes).toString('hex'))
    expect(bytes(4, 2)).toEqual(bytes(4, 2))
    expect(bytes(4, 2)).not.toEqual(bytes(5, 2))
    expect(bytes(4, 2)).not.toEqual(bytes(4, 3))
  })

  test('are numbered across batches, of every type, both versions and senders, valid and not', () => {
    const cases = [0, 1, 2, 3].flatMap((batch) => generate(1, batch))
    expect(cases.map(({ number }) => number)).toEqual(Array.from({ length: 4 * batchSize }, (_, number) => number))
    const valid = cases.filter(({ kind }) => kind !== 'faulty')
    expect(new Set(valid.map(({ packet }) => packet?.type)).size).toBe(15)
    expect(new Set(valid.map(({ version, from }) => `${version} ${from}`)).size).toBe(4)
    expect(new Set(cases.map(({ kind }) => kind))).toEqual(new Set(['encoded', 'long', 'faulty']))
  })
})

describe('the table of judgements', () => {
  test('has names that differ, and a section and a reason for each', () => {
    expect(new Set(judgements.map(({ name }) => name)).size).toBe(judgements.length)
    for (const { section, reason } of judgements) {
      expect(section).toMatch(/^\d/)
      expect(reason.length).toBeGreaterThan(10)
    }
  })
})

describe('the common form', () => {
  test('tells every place where two packets differ', () => {
    const ours = { type: 'connack', properties: { maximumQoS: 1, userProperties: [['a', 'b']] }, list: [{ qos: 1 }, { qos: 2 }] }
    const theirs = { type: 'connack', properties: { userProperties: [['a', 'c']] }, list: [{ qos: 1 }, { qos: 0 }] }
    expect(places(ours, theirs).map(({ path }) => path)).toEqual(['properties.maximumQoS', 'properties.userProperties', 'list[].qos'])
    expect(places(ours, structuredClone(ours))).toEqual([])
  })

  test('has the names of ours for the fields of mqtt-packet', () => {
    const given = { cmd: 'connack', retain: false, qos: 0, dup: false, length: 9, topic: null, sessionPresent: true, reasonCode: 0 }
    const properties = { subscriptionIdentifiersAvailable: false, maximumQoS: 1 }
    expect(normalizedPacket({ ...given, properties }, 5)).toEqual({
      type: 'connack',
      sessionPresent: true,
      reasonCode: 0,
      properties: { subscriptionIdentifierAvailable: 0, maximumQoS: 1 },
    })
  })

  test('groups pairs as an object of names does', () => {
    expect(
      groupedPairs([
        ['b', 'x'],
        ['1', 'y'],
        ['b', ''],
        ['', ''],
        ['', 'z'],
      ] as const),
    ).toEqual([
      ['1', 'y'],
      ['b', 'x'],
      ['b', ''],
      ['', 'z'],
    ])
  })
})
