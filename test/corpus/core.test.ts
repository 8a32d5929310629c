/** Every case in every state on the bare framer and session: whole, cut everywhere, byte by byte. */
import { describe, expect, it } from 'vitest'
import type { PacketName } from './facts.js'
import { runCore } from './run/core-jobs.js'
import { jobs } from './run/jobs.js'
import { misjudged } from './run/misjudged.js'

const patience = 240_000

async function check(version: 4 | 5, ...types: PacketName[]): Promise<void> {
  const list = jobs(version).filter(({ sequence }) => types.includes(sequence.type))
  expect(list.length).toBeGreaterThan(500)
  expect(await runCore(list)).toEqual([])
}

describe('MQTT 5.0 on the bare core, whole, cut at every byte and byte by byte (N26)', () => {
  it(
    'CONNACK: A17 A21 A22 A23 A24 A25 A30 A32 A37 F06 M20 N17 N18 [MQTT-3.2.0-2] [MQTT-3.2.2-1] [MQTT-3.2.2-4] [MQTT-3.2.2-6] [MQTT-4.12.0-5]',
    () => check(5, 'connack'),
    patience,
  )

  it(
    'PUBLISH: A27 E01 E03 E05 E13 E14 E15 E16 E17 E23 E28 J01 J02 J03 J04 J07 N19 N20 N21 N25 [MQTT-3.3.1-4] [MQTT-3.3.2-2] [MQTT-3.3.2-8] [MQTT-3.3.2-10]',
    () => check(5, 'publish'),
    patience,
  )

  it(
    'PUBACK, PUBREC, PUBREL, PUBCOMP: A27 D05 D08 D10 D12 D14 D15 D16 D17 D18 D19 D20 E04 E06 E08',
    () => check(5, 'puback', 'pubrec', 'pubrel', 'pubcomp'),
    patience,
  )

  it('SUBACK, UNSUBACK: A27 C06 C07 C09 C24 C25', () => check(5, 'suback', 'unsuback'), patience)

  it('PINGRESP, DISCONNECT, AUTH: A27 B12 M05 M17 M19 M20 N08', () => check(5, 'pingresp', 'disconnect', 'auth'), patience)

  it('what no server sends: A31 N03 N05', () => check(5, 'reserved', 'connect', 'subscribe', 'unsubscribe', 'pingreq'), patience)
})

describe('MQTT 3.1.1 on the bare core, whole, cut at every byte and byte by byte (N26)', () => {
  it('CONNACK: A21 A22 A23 A24 A25 A30 A37', () => check(4, 'connack'), patience)

  it('PUBLISH: A27 E01 E03 E05 E10 E13 E14 E15 E16 E28', () => check(4, 'publish'), patience)

  it('PUBACK, PUBREC, PUBREL, PUBCOMP: A27 D12 D14 D15 D16 D17 D19 D20 E06 E08', () => check(4, 'puback', 'pubrec', 'pubrel', 'pubcomp'), patience)

  it('SUBACK, UNSUBACK, PINGRESP: A27 B12 C06 C07 C09 C25 N08', () => check(4, 'suback', 'unsuback', 'pingresp'), patience)

  it(
    'what no server sends: A31 M06 M17 N03 N04',
    () => check(4, 'reserved', 'connect', 'subscribe', 'unsubscribe', 'pingreq', 'disconnect', 'auth'),
    patience,
  )
})

describe('the corpus on the bare core', () => {
  it('would notice: each wrong expectation is found', async () => {
    const wrong = misjudged()
    expect(await runCore(wrong)).toHaveLength(wrong.length)
  })
})
