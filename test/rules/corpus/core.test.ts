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

describe('MQTT 5.0 on the bare core, whole, cut at every byte and byte by byte', () => {
  it('CONNACK: [MQTT-3.2.0-2] [MQTT-3.2.2-1] [MQTT-3.2.2-4] [MQTT-3.2.2-6] [MQTT-4.12.0-5]', () => check(5, 'connack'), patience)

  it('PUBLISH: [MQTT-3.3.1-4] [MQTT-3.3.2-2] [MQTT-3.3.2-8] [MQTT-3.3.2-10]', () => check(5, 'publish'), patience)

  it('PUBACK, PUBREC, PUBREL, PUBCOMP', () => check(5, 'puback', 'pubrec', 'pubrel', 'pubcomp'), patience)

  it('SUBACK, UNSUBACK', () => check(5, 'suback', 'unsuback'), patience)

  it('PINGRESP, DISCONNECT, AUTH', () => check(5, 'pingresp', 'disconnect', 'auth'), patience)

  it('what no server sends', () => check(5, 'reserved', 'connect', 'subscribe', 'unsubscribe', 'pingreq'), patience)
})

describe('MQTT 3.1.1 on the bare core, whole, cut at every byte and byte by byte', () => {
  it('CONNACK', () => check(4, 'connack'), patience)

  it('PUBLISH', () => check(4, 'publish'), patience)

  it('PUBACK, PUBREC, PUBREL, PUBCOMP', () => check(4, 'puback', 'pubrec', 'pubrel', 'pubcomp'), patience)

  it('SUBACK, UNSUBACK, PINGRESP', () => check(4, 'suback', 'unsuback', 'pingresp'), patience)

  it('what no server sends', () => check(4, 'reserved', 'connect', 'subscribe', 'unsubscribe', 'pingreq', 'disconnect', 'auth'), patience)
})

describe('the corpus on the bare core', () => {
  it('would notice: each wrong expectation is found', async () => {
    const wrong = misjudged()
    expect(await runCore(wrong)).toHaveLength(wrong.length)
  })
})
