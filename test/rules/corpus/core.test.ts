/** Every case in every state on the bare framer and session: whole, cut everywhere, byte by byte. */
import { describe, expect, it } from 'vitest'
import type { PacketName } from './facts.js'
import { runCore } from './run/core.js'
import { jobs } from './run/jobs.js'
import { misjudged } from './run/misjudged.js'

const acks: PacketName[] = ['puback', 'pubrec', 'pubrel', 'pubcomp']
const ofClients: PacketName[] = ['reserved', 'connect', 'subscribe', 'unsubscribe', 'pingreq']

describe('on the bare core, whole, cut at every byte and byte by byte', () => {
  it.each<[string, 4 | 5, PacketName[]]>([
    [
      'CONNACK: [MQTT-3.2.0-2] [MQTT-3.2.2-1] [MQTT-3.2.2-4] [MQTT-3.2.2-6] [MQTT-4.12.0-5]',
      5,
      ['connack'],
    ],
    ['PUBLISH: [MQTT-3.3.1-4] [MQTT-3.3.2-2] [MQTT-3.3.2-8] [MQTT-3.3.2-10]', 5, ['publish']],
    ['PUBACK, PUBREC, PUBREL, PUBCOMP', 5, acks],
    ['SUBACK, UNSUBACK', 5, ['suback', 'unsuback']],
    ['PINGRESP, DISCONNECT, AUTH', 5, ['pingresp', 'disconnect', 'auth']],
    ['what no server sends', 5, ofClients],
    ['CONNACK of 3.1.1', 4, ['connack']],
    ['PUBLISH of 3.1.1', 4, ['publish']],
    ['PUBACK, PUBREC, PUBREL, PUBCOMP of 3.1.1', 4, acks],
    ['SUBACK, UNSUBACK, PINGRESP of 3.1.1', 4, ['suback', 'unsuback', 'pingresp']],
    ['what no server of 3.1.1 sends', 4, [...ofClients, 'disconnect', 'auth']],
  ])(
    '%s',
    async (_what, version, types) => {
      const list = jobs(version).filter(({ sequence }) => types.includes(sequence.type))
      expect(list.length).toBeGreaterThan(500)
      expect(await runCore(list)).toEqual([])
    },
    240_000,
  )

  it('would notice: each wrong expectation is found', async () => {
    const wrong = misjudged()
    expect(await runCore(wrong)).toHaveLength(wrong.length)
  })
})
