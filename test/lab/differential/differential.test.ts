/**
 * The differential run of the codec in small, with mqtt-packet alone: nothing is found, and a codec that is wrong is. `npm run lab -- differential` goes on
 * with more packets and, where there is Go, more codecs.
 */
import { describe, expect, test } from 'vitest'
import { batchSize, generate } from './generate.js'
import { judgements } from './judged.js'
import { groupedPairs, normalizedPacket, places } from './normalize.js'
import { decodeOurs, type Ours } from './ours.js'
import { run } from './run.js'

const options = {
  seed: 5,
  packets: 3000,
  limit: 600,
  codecs: ['mqtt-packet'] as const,
  program: undefined,
}

/** Ours, with something done to each packet. */
const altered =
  (change: (ours: Ours) => Ours): typeof decodeOurs =>
  (bytes, setting) =>
    change(decodeOurs(bytes, setting))

describe('the codec beside mqtt-packet', () => {
  test('differs in nothing that is not judged', { timeout: 60_000 }, async () => {
    const { packets, findings, asked } = await run(options)
    expect([...findings.keys()]).toEqual([])
    expect(packets).toBe(3000)
    expect(asked.get('mqtt-packet')?.accepted).toBeGreaterThan(1000)
  })

  test.each<[kind: string, change: (ours: Ours) => Ours]>([
    [
      'mqtt-packet field: ',
      (ours) => (ours.fields ? { ...ours, fields: { ...ours.fields, qos: 1, dup: true } } : ours),
    ],
    [
      'mqtt-packet accepts: ',
      (ours) => (ours.fields?.['type'] === 'puback' ? { error: 'no' } : ours),
    ],
    ['standard', (ours) => (ours.fields?.['type'] === 'subscribe' ? { error: 'no' } : ours)],
  ])('finds a codec that is wrong: %s', { timeout: 60_000 }, async (kind, change) => {
    const { findings } = await run({ ...options, packets: 1000, decode: altered(change) })
    const found = [...findings.values()].find((each) => each.kind.startsWith(kind))
    const text = expect.any(String)
    expect(found?.verdicts).toEqual({ ours: text, standard: text, 'mqtt-packet': text })
  })

  test('repeats the batch of a packet', async () => {
    expect((await run({ ...options, number: batchSize + 7 })).packets).toBe(batchSize)
  })
})

describe('the packets of a seed', () => {
  test('are the same each time, and others for another seed or batch', () => {
    const bytes = (seed: number, batch: number) => generate(seed, batch).map((each) => each.bytes)
    expect(bytes(4, 2)).toEqual(bytes(4, 2))
    expect(bytes(4, 2)).not.toEqual(bytes(5, 2))
    expect(bytes(4, 2)).not.toEqual(bytes(4, 3))
  })

  test('are numbered across batches, of every type, both versions and senders, valid and not', () => {
    const cases = [0, 1, 2, 3].flatMap((batch) => generate(1, batch))
    expect(cases.map(({ number }) => number)).toEqual(
      Array.from({ length: 4 * batchSize }, (_, number) => number),
    )
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
    const ours = {
      properties: { maximumQoS: 1, userProperties: [['a', 'b']] },
      list: [{ qos: 1 }, { qos: 2 }],
    }
    const theirs = { properties: { userProperties: [['a', 'c']] }, list: [{ qos: 1 }, { qos: 0 }] }
    const paths = places(ours, theirs).map(({ path }) => path)
    expect(paths).toEqual(['properties.maximumQoS', 'properties.userProperties', 'list[].qos'])
    expect(places(ours, structuredClone(ours))).toEqual([])
  })

  test('has the names of ours for the fields of mqtt-packet', () => {
    const fillers = { retain: false, qos: 0, dup: false, length: 9, topic: null }
    const given = { cmd: 'connack', ...fillers, sessionPresent: true, reasonCode: 0 }
    const properties = { subscriptionIdentifiersAvailable: false, maximumQoS: 1 }
    expect(normalizedPacket({ ...given, properties }, 5)).toEqual({
      type: 'connack',
      sessionPresent: true,
      reasonCode: 0,
      properties: { subscriptionIdentifierAvailable: 0, maximumQoS: 1 },
    })
  })

  test('groups pairs as an object of names does', () => {
    const pairs = (text: string): [string, string][] =>
      text.split(' ').map((pair) => pair.split('=') as [string, string])
    expect(groupedPairs(pairs('b=x 1=y b= = =z'))).toEqual(pairs('1=y b=x b= =z'))
  })
})
