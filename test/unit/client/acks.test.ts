/** Acknowledgements: the three modes, order on the wire, reason codes, stale ones, and what `disconnect()` does with open turns. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/api/index.js'
import { acks, agreed, gate, obliging, pubacks, publish, quiet, read, series, subscribe, taken, takenTexts } from './incoming.js'
import { stubbed } from './stub.js'

describe("'auto'", () => {
  it('asking for the next message acknowledges this one, and nothing else does', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 3))
    expect(taken(subscription).text()).toBe('1')
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual([])
    expect((await subscription.next())?.text()).toBe('2')
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(taken(subscription).text()).toBe('3')
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(subscription.read()).toBeUndefined()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
  })

  it('the for-await loop: acknowledged when the body is done, not before', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const gates = [gate(), gate()]
    let index = 0
    ;(async () => {
      for await (const _ of subscription) await gates[index++]?.promise
    })()
    await world.send(...series('a', 2))
    expect(acks(world)).toEqual([])
    gates[0]?.open()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    gates[1]?.open()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('a batch is acknowledged when the next batch is asked for', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 5))
    const batches = subscription.batches(2)
    const texts = async () => ((await batches.next()).value as Message[]).map((message) => message.text())
    expect(await texts()).toEqual(['1', '2'])
    await world.settle()
    expect(acks(world)).toEqual([])
    expect(await texts()).toEqual(['3', '4'])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(await texts()).toEqual(['5'])
    quiet(batches.next())
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3', 'puback 4', 'puback 5'])
  })

  it('batches() without a number gives all that are there, and waits for the first', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const batches = subscription.batches()
    const first = batches.next()
    await world.send(publish('a', 'x'))
    expect((await first).value.map((message: Message) => message.text())).toEqual(['x'])
    await world.send(publish('a', 'y'), publish('a', 'z'))
    expect((await batches.next()).value.map((message: Message) => message.text())).toEqual(['y', 'z'])
    expect(() => subscription.batches(0)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
  })

  it('ack() before the turn ends is legal: the turn does not acknowledge again', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    expect(taken(subscription).ack(0x83)).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1 0x83'])
    taken(subscription)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1 0x83'])
  })
})

describe("'manual'", () => {
  it('nothing but ack() acknowledges', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    const reading = read(subscription)
    await world.send(...series('a', 3))
    expect(reading.texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual([])
    for (const message of reading.messages) expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('[MQTT-4.6.0-2] [MQTT-4.6.0-3] only the second is acknowledged: neither leaves until the first is', async () => {
    const world = await agreed({}, obliging)
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }), publish('a', '3', 3), publish('a', '4', 4, { qos: 2 }))
    const messages = [taken(subscription), taken(subscription), taken(subscription), taken(subscription)]
    messages[3]?.ack()
    messages[1]?.ack()
    messages[2]?.ack(0x80)
    await world.settle()
    expect(acks(world)).toEqual([])
    messages[0]?.ack()
    await world.settle()
    expect(acks(world).filter((ack) => !ack.startsWith('pubcomp'))).toEqual(['puback 1', 'pubrec 2', 'puback 3 0x80', 'pubrec 4'])
  })

  it('acknowledgements of one turn leave in one write', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', 3))
    const before = world.peer.bytes.length
    const messages = [taken(subscription), taken(subscription), taken(subscription)]
    for (const message of messages.reverse()) message.ack()
    expect(world.peer.bytes.length).toBe(before)
    await world.settle()
    expect(world.peer.bytes.slice(before)).toEqual([0x40, 2, 0, 1, 0x40, 2, 0, 2, 0x40, 2, 0, 3])
  })

  it('a second ack is stale', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = taken(subscription)
    expect([message.ack(), message.ack(), message.ack(0x80)]).toEqual([true, false, false])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('after the end of the connection and of the session an ack is stale', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = taken(subscription)
    world.peer.cut()
    await world.settle()
    expect(message.ack()).toBe(false)
    expect(message.text()).toBe('x')
  })

  it('ack() on QoS 0 is true, every time, and sends nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x'))
    const message = taken(subscription)
    expect([message.ack(), message.ack()]).toEqual([true, true])
    await world.settle()
    expect(acks(world)).toEqual([])
  })

  it('overlapping next() is fine', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    const waiting = [subscription.next(), subscription.next()]
    await world.send(...series('a', 2))
    expect((await Promise.all(waiting)).map((message) => message?.text())).toEqual(['1', '2'])
  })
})

describe("'on-receive'", () => {
  it('acknowledges on entering the buffer, before anybody reads', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'on-receive' })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
    expect(takenTexts(subscription)).toEqual(['1', '2'])
  })

  it('its default overflow is drop-oldest', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'on-receive', buffer: 2 })
    for (let id = 1; id <= 6; id++) await world.send(publish('a', String(id), id))
    expect(acks(world)).toEqual(pubacks(1, 6))
    expect(takenTexts(subscription).at(-1)).toBe('6')
    expect(subscription.dropped).toBeGreaterThanOrEqual(3)
  })

  it("overflow 'backpressure' with it is ERR_INVALID_OPTION", async () => {
    const world = await agreed()
    expect(() => world.client.subscription('a', { ack: 'on-receive', overflow: 'backpressure' })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'overflow' }),
    )
  })

  it('ack() is stale, and overlapping next() is fine', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
    const waiting = [subscription.next(), subscription.next()]
    await world.send(...series('a', 2))
    const messages = await Promise.all(waiting)
    expect(messages.map((message) => message?.ack())).toEqual([false, false])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })
})

describe('reason codes', () => {
  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])('[MQTT-3.4.2-1] [MQTT-3.5.2-1] %i is sent at QoS 1 and 2', async (reasonCode) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
    taken(subscription).ack(reasonCode)
    taken(subscription).ack(reasonCode)
    await world.settle()
    const hex = `0x${reasonCode.toString(16)}`
    expect(acks(world)).toEqual([`puback 1 ${hex}`, `pubrec 2 ${hex}`])
  })

  it('[MQTT-4.3.3-9] an error code ends QoS 2 at PUBREC: the identifier is free, a PUBREL for it is answered with 0x92', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual' })
    await world.send(publish('a', '1', 1, { qos: 2 }))
    taken(subscription).ack(0x87)
    await world.settle()
    await world.send({ type: 'pubrel', packetId: 1, reasonCode: 0 })
    await world.send(publish('a', '2', 1, { qos: 2, dup: true }))
    expect(takenTexts(subscription)).toEqual(['2'])
    expect(acks(world)).toEqual(['pubrec 1 0x87', 'pubcomp 1 0x92'])
  })

  it.each([0x01, 0x10, 0x7f, 0x81, 0x8e, 0x92, 0xff, 256, -1, 1.5, '128'])(
    '[MQTT-3.4.2-1] %s is none that a client may send: refused, no effect',
    async (reasonCode) => {
      const world = await agreed()
      const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
      await world.send(publish('a', 'x', 1))
      const message = taken(subscription)
      expect(() => message.ack(reasonCode as number)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
      await world.settle()
      expect(acks(world)).toEqual([])
      expect(message.ack()).toBe(true)
      await world.settle()
      expect(acks(world)).toEqual(['puback 1'])
    },
  )
})

describe('disconnect() and open turns', () => {
  it('waits for the running turn, then acknowledges and says goodbye; hands out nothing more', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const body = gate()
    const texts: string[] = []
    const loop = (async () => {
      for await (const message of subscription) {
        texts.push(message.text())
        await body.promise
      }
    })()
    await world.send(...series('a', 3))
    const done = quiet(world.client.disconnect())
    await world.clock.advance(4000)
    expect(world.peer.all('disconnect')).toEqual([])
    expect(world.client.state).toBe('disconnecting')
    body.open()
    await world.settle()
    await Promise.all([done, loop])
    expect(texts).toEqual(['1'])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('under manual acks it waits for open ones, and acknowledges in order what is settled meanwhile', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', 3))
    const [first, second] = [taken(subscription), taken(subscription)]
    const done = quiet(world.client.disconnect())
    await world.settle()
    second.ack()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    first.ack()
    await world.settle()
    await world.outcome(done)
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(world.client.state).toBe('closed')
  })

  it('under manual acks disconnect() goes on as soon as the last open one is acknowledged', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = taken(subscription)
    const done = quiet(world.client.disconnect())
    await world.clock.advance(1000)
    message.ack()
    await world.settle()
    expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it.each(['auto', 'on-receive'] as const)('what arrives after disconnect() began is left unacknowledged, as nobody will get it: %s', async (ack) => {
    const world = await agreed({ clientId: 'c', cleanStart: false })
    const busy = await subscribe(world, 'busy', { qos: 1, ack: 'manual' })
    const other = await subscribe(world, 'other', { qos: 1, ack })
    await world.send(publish('busy', 'x', 1))
    const message = taken(busy)
    const done = quiet(world.client.disconnect())
    await world.settle()
    await world.send(publish('other', 'late', 2))
    message.ack()
    await world.settle()
    await done
    expect(takenTexts(other)).toEqual([])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('a turn that does not end is left unacknowledged after the timeout', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const message = taken(subscription)
    const done = quiet(world.client.disconnect({ timeout: 200 }))
    await world.clock.advance(199)
    expect(world.peer.all('disconnect')).toEqual([])
    await world.clock.advance(51)
    expect(await world.outcome(done)).toMatchObject({ state: 'fulfilled' })
    expect(acks(world)).toEqual([])
    expect(world.peer.all('disconnect')).toHaveLength(1)
    expect(message.ack()).toBe(false)
  })

  it('a loop body may throw while stopping: under detach its message is left unacknowledged', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, onExit: 'detach' })
    const body = gate()
    const loop = quiet(
      (async () => {
        for await (const _ of subscription) await body.promise
      })(),
    )
    await world.send(publish('a', 'x', 1))
    const done = quiet(world.client.disconnect())
    await world.settle()
    body.fail(new Error('no'))
    await world.settle()
    await world.clock.advance(5000)
    await done
    await expect(loop).rejects.toThrow('no')
    expect(acks(world)).toEqual([])
  })
})

describe('one message for several consumers', () => {
  it('is acknowledged when each has, not when one has twice', async () => {
    const world = await stubbed()
    const subscribing = [1, 2].map(() => world.client.subscribe('t', { qos: 1, ack: 'manual' }))
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [1] })
    await world.deliver({ type: 'publish', topic: 't', qos: 1, packetId: 5 })
    const [first, second] = await Promise.all(subscribing.map(async (subscription) => (await subscription).next()))
    world.forget()
    expect([first?.ack(), first?.ack()]).toEqual([true, false])
    await world.settle()
    expect(world.stub.packets).toEqual([])
    expect(second?.ack()).toBe(true)
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'puback', packetId: 5, reasonCode: 0 }])
  })
})
