import { describe, expect, it } from 'vitest'
import { agreeable, failure } from './harness.js'
import { down, refusing, welcoming } from './rig.js'
import { connects, lost, rigged, story, up, within } from './rigged.js'

const waiting = { firstConnect: 'wait' } as const
const assigning = (name: string, present = false) =>
  welcoming({ assignedClientIdentifier: name }, present)

describe('who we are, on every connection', () => {
  it('an assigned identifier is used for all later reconnects [MQTT-3.2.2-16]', async () => {
    const rig = await up({}, { behave: () => assigning('auto-1') })
    rig.behave = (_host, dial) => (dial === 3 ? down : welcoming({}, true))
    for (let round = 0; round < 3; round++) {
      expect(rig.client.clientId).toBe('auto-1')
      await rig.cut()
      await rig.advance(10_000)
    }
    expect(connects(rig, 'clientId')).toEqual(['', 'auto-1', 'auto-1', 'auto-1'])
    expect(rig.client.clientId).toBe('auto-1')
  })

  it('an attempt that came to nothing assigned nothing', async () => {
    const rig = rigged(waiting)
    rig.behave = (_host, dial) => (dial === 1 ? refusing(0x88) : assigning('auto-2'))
    await within(rig, 1000, rig.client.connect())
    expect([...connects(rig, 'clientId'), rig.client.clientId]).toEqual(['', '', 'auto-2'])
  })

  it('Clean Start as configured until the first CONNACK, then 0', async () => {
    const rig = rigged(waiting)
    rig.behave = (_host, dial) => (dial < 3 ? refusing(0x88) : welcoming({}, dial > 3))
    await within(rig, 3000, rig.client.connect())
    await rig.cut()
    await rig.advance(4000)
    expect(connects(rig, 'cleanStart')).toEqual([true, true, true, false])
    expect(rig.seen('connect').map(({ sessionPresent }) => sessionPresent)).toEqual([false, true])
  })

  it('the same options on every connection, without the will or the login being forgotten', async () => {
    const will = { topic: 'w', payload: 'gone', qos: 1 } as const
    const userProperties: [string, string][] = [['a', 'b']]
    const options = { username: 'u', password: 'p', will, userProperties, keepAlive: 17 }
    const rig = await lost(() => agreeable, 1000, options)
    const [first, second] = rig.peers.map((peer) => peer.last('connect'))
    expect({ ...second, cleanStart: true }).toEqual(first)
  })

  it.each([
    ['QoS', 0x9b],
    ['retain', 0x9a],
  ])(
    '%s of the will is not offered, 0x%s: typed, and the will stays as it is',
    async (_name, reasonCode) => {
      const will = { topic: 'w', qos: 2, retain: true } as const
      const rig = rigged(
        { ...waiting, will },
        { hosts: ['a', 'b'], behave: () => refusing(reasonCode) },
      )
      const error = await within(rig, 0, failure(rig.client.connect()))
      expect(error.cause).toMatchObject({ errors: [{ reasonCode }, { reasonCode }] })
      expect(connects(rig, 'will')).toMatchObject([will, will])
    },
  )
})

describe('a server that knows 3.1.1 only', () => {
  const silent = () => () => undefined
  const auto = { protocolVersion: 'auto' } as const
  const refusals = ['20 02 00 01', '20 03 00 84 00']
  const refused = { code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 }

  it.each(refusals)('by default %s is the end: 0x84, one attempt', async (bytes) => {
    const rig = rigged(waiting, { behave: silent })
    const error = failure(rig.client.connect())
    await rig.settle()
    rig.peer.sendBytes(bytes)
    expect(await within(rig, 60_000, error)).toMatchObject(refused)
    expect(rig.dials).toHaveLength(1)
  })

  it.each(refusals)(
    'auto and %s: the next attempt, at once, is 3.1.1 with fresh credentials, and it stays so',
    async (bytes) => {
      let asked = 0
      const credentials = () => ({ username: `u${++asked}` })
      const rig = rigged({ ...auto, credentials }, { behave: silent, version: 4 })
      const connecting = rig.client.connect()
      await rig.settle()
      rig.behave = () => agreeable
      rig.peer.sendBytes(bytes)
      await within(rig, 0, connecting)
      expect(story(rig)).toMatchObject({ hosts: 'aa', delays: [] })
      const second = { protocolVersion: 4, properties: {}, cleanStart: true, username: 'u2' }
      expect(rig.peer.last('connect')).toMatchObject(second)
      expect(rig.peer.last('connect').clientId).toMatch(/^[0-9A-Za-z]{1,23}$/)
      expect(rig.client.negotiated?.protocolVersion).toBe(4)
      await rig.cut()
      await rig.advance(1000)
      expect(connects(rig, 'protocolVersion')).toEqual([5, 4, 4])
      // One event says so.
      expect(rig.seen('connecterror')).toMatchObject([{ attempt: 1, error: { reasonCode: 0x84 } }])
    },
  )
})
