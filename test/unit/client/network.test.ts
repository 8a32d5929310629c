/** The network and the clock around the client: large packets both ways, slow and uneven lines, a wall clock that is set back. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { accepting, agreeable, connected, failure } from './harness.js'
import { quiet } from './incoming.js'
import { down, Rig, reconnect } from './rig.js'
import { ack } from './stub.js'

describe('the wall clock is set back by a day', () => {
  /** A client whose calendar goes back when asked to. */
  async function rig(options: ClientOptions = {}): Promise<{ world: Rig; back(): void }> {
    let days = 40
    const world: Rig = new Rig(options, {
      platform: { date: () => world.clock.now() + days * 86_400_000 },
    })
    await world.up()
    const back = (): void => {
      days -= 1
    }
    return { world, back }
  }

  it('keep-alive, back-off and timeouts go on as before', async () => {
    const { world, back } = await rig({ keepAlive: 10, pingTimeout: 5000, connectTimeout: 2000 })
    await world.advance(5000)
    back()
    await world.advance(4999)
    expect(world.peer.all('pingreq')).toHaveLength(0)
    await world.advance(1)
    expect(world.peer.all('pingreq')).toHaveLength(1)
    quiet(world.client.publish('t', 'x', { qos: 1, ackTimeout: 500 }))
    world.peer.answer = () => undefined
    world.behave = () => () => undefined
    await world.settle()
    await world.cut()
    back()
    await world.advance(1000 + 2000)
    expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_TIMEOUT' } }])
    expect(world.delays).toEqual([reconnect.backoff(1), reconnect.backoff(2)])
    world.behave = () => agreeable
    await world.advance(2000)
    expect(world.client.state).toBe('connected')
    await world.finish()
  })

  it('`ttl`, message expiry and ackTimeout count the time that passed', async () => {
    const { world, back } = await rig()
    world.behave = () => down
    await world.cut()
    const short = failure(world.client.publish('t', 'short', { qos: 1, ttl: 2500 }))
    const expiring = failure(
      world.client.publish('t', 'expiring', { qos: 1, properties: { messageExpiryInterval: 3 } }),
    )
    quiet(world.client.publish('t', 'lives', { qos: 1, properties: { messageExpiryInterval: 60 } }))
    back()
    await world.advance(4000)
    expect([(await short).code, (await expiring).code]).toEqual(['ERR_EXPIRED', 'ERR_EXPIRED'])
    world.behave = () => agreeable
    await world.advance(10_000)
    const interval = world.peer.all('publish')[0]?.properties.messageExpiryInterval
    expect(interval).toBeLessThanOrEqual(56)
    expect(interval).toBeGreaterThan(40)
    await world.finish()
  })

  it('a session that is over by the time that passed is over', async () => {
    const { world, back } = await rig({ sessionExpiryInterval: 20 })
    const waiting = failure(world.client.publish('t', 'x', { qos: 2, onSessionLost: 'reject' }))
    world.peer.answer = () => undefined
    world.behave = () => down
    await world.cut()
    back()
    await world.advance(19_000)
    expect(world.seen('sessionlost')).toEqual([])
    await world.advance(30_000)
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
    expect((await waiting).code).toBe('ERR_SESSION_LOST')
    await world.finish()
  })
})

it('Request Problem Information 0 is asked for; what the server may still say is told, the rest is not expected', async () => {
  const world = await connected(
    { requestProblemInformation: false },
    accepting({ reasonString: 'welcome' }),
  )
  expect(world.peer.last('connect').properties.requestProblemInformation).toBe(0)
  expect(world.client.negotiated?.reasonString).toBe('welcome')
  const refused = failure(world.client.publish('t', 'x', { qos: 1 }))
  await world.send(ack('puback', 1, 0x97))
  const error = await refused
  expect([error.code, error.reasonCode, error.reasonString]).toEqual([
    'ERR_PUBLISH_REFUSED',
    0x97,
    undefined,
  ])
  expect(error.message.length).toBeGreaterThan(10)
  await world.send({
    type: 'disconnect',
    reasonCode: 0x8b,
    properties: { reasonString: 'going down' },
  })
  expect(world.seen('serverdisconnect')[0]?.error.reasonString).toBe('going down')
})
