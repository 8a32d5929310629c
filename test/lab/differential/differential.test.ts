/** The differential run of the codec in small, with mqtt-packet alone: nothing is found, and a codec that is wrong is. */
import { expect, it } from 'vitest'
import { decodeOurs, type Ours } from './compare.js'
import { run } from './run.js'

const options = {
  seed: 5,
  packets: 12_000,
  limit: 600,
  codecs: ['mqtt-packet'] as const,
  program: undefined,
}

it('differs from mqtt-packet in nothing that is not judged', { timeout: 60_000 }, async () => {
  const { packets, findings, asked } = await run(options)
  expect([...findings.keys()]).toEqual([])
  expect(packets).toBe(12_000)
  expect(asked.get('mqtt-packet')?.accepted).toBeGreaterThan(4000)
})

it.each<[kind: string, change: (ours: Ours) => Ours]>([
  [
    'mqtt-packet field: ',
    (ours) => (ours.fields ? { ...ours, fields: { ...ours.fields, qos: 1, dup: true } } : ours),
  ],
  ['standard', (ours) => (ours.fields?.['type'] === 'subscribe' ? { error: 'no' } : ours)],
])('finds a codec that is wrong: %s', { timeout: 60_000 }, async (kind, change) => {
  const decode: typeof decodeOurs = (bytes, setting) => change(decodeOurs(bytes, setting))
  const { findings } = await run({ ...options, packets: 1000, decode })
  expect([...findings.keys()].some((each) => each.startsWith(kind))).toBe(true)
})
