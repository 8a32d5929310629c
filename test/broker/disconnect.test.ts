/** What the broker in memory says in its DISCONNECT. */
import { describe, expect, it } from 'vitest'
import { world } from './raw-client.js'

describe('a DISCONNECT of the broker', () => {
  it('says why only where the client has room for it [MQTT-3.14.2-3] [MQTT-3.1.2-24]', async () => {
    for (const maximumPacketSize of [undefined, 10]) {
      const { join } = world({ topicAliasMaximum: 0 })
      const client = await join('a', { properties: { maximumPacketSize } })
      const [goodbye] = await client.send({ type: 'publish', topic: 't', properties: { topicAlias: 1 } })
      expect(goodbye).toMatchObject({ type: 'disconnect', reasonCode: 0x94 })
      const properties = goodbye !== undefined && 'properties' in goodbye ? goodbye.properties : {}
      expect(Object.keys(properties)).toEqual(maximumPacketSize === undefined ? ['reasonString'] : [])
    }
  })
})
