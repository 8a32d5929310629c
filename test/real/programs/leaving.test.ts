/** Services that end on a real broker: one of a group leaves under load, an UNSUBSCRIBE of the last turn, a broker that goes down at the same time. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { Client } from '../../../src/client/node.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import { pause } from '../../support/pausing.js'
import { withMosquitto } from '../brokers.js'
import { Restartable } from '../restartable.js'
import { eventually, within } from '../waiting.js'

withMosquitto(['TCP'], () => {
  let broker: Restartable
  const clients: Client[] = []

  async function client(options: ClientOptions = {}): Promise<Client> {
    const made = new Client(broker.url, options)
    clients.push(made)
    await within(made.connect(), 'connecting')
    return made
  }

  beforeEach(async () => {
    broker = await Restartable.start({ memory: 'every second' })
  })
  afterEach(async () => {
    for (const made of clients.splice(0)) made.destroy()
    await broker.stop()
  })

  it('one of four members of a group leaves: each of 2,000 messages at QoS 0 is handled once', async () => {
    const seen: string[] = []
    const members = await Promise.all([1, 2, 3, 4].map(() => client()))
    const handle = async (message: { text(): string }): Promise<void> => {
      await pause(1)
      seen.push(message.text())
    }
    await Promise.all(members.map((member) => member.listen('$share/workers/jobs', handle)))
    const sender = await client()
    let leaving: Promise<void> | undefined
    for (let number = 0; number < 2000; number++) {
      sender.post('jobs', String(number))
      if (number === 1000) leaving = members[0]?.disconnect({ timeout: 20_000 })
      if (number % 20 === 0) await pause(1)
    }
    await within(leaving as Promise<void>, 'the leaving')
    await eventually(() => seen.length >= 2000, 'all messages')
    expect(new Set(seen).size).toBe(2000)
    expect(seen).toHaveLength(2000)
  })

  it('one of four responders leaves: 2,000 requests have their answers', async () => {
    const responders = await Promise.all([1, 2, 3, 4].map(() => client()))
    await Promise.all(
      responders.map((responder) =>
        responder.respond('$share/workers/square', (request) =>
          String(Number(request.text()) ** 2),
        ),
      ),
    )
    const requester = await client()
    const answers: Promise<number>[] = []
    let leaving: Promise<void> | undefined
    for (let number = 0; number < 2000; number++) {
      answers.push(
        requester
          .request('square', String(number), { timeout: 15_000 })
          .then((answer) => Number(answer.text())),
      )
      if (number === 1000) leaving = responders[0]?.disconnect()
      if (number % 50 === 0) await pause(1)
    }
    await within(leaving as Promise<void>, 'the leaving')
    const got = await Promise.allSettled(answers)
    expect(got.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(
      got.every((answer, number) => answer.status === 'fulfilled' && answer.value === number ** 2),
    ).toBe(true)
  })

  it.each(['disconnect', 'drain'] as const)(
    'break, then %s(): the next process gets nothing of that filter',
    async (end) => {
      const durable = { clientId: 'reader', cleanStart: false, sessionExpiryInterval: 600 }
      const sender = await client()
      const reader = await client(durable)
      const subscription = await reader.subscribe('news', { qos: 1, onExit: 'unsubscribe' })
      await sender.publish('news', 'one', { qos: 1 })
      for await (const _ of subscription) break
      await within(reader[end](), end)
      await sender.publish('news', 'two', { qos: 1 })
      const next = new Client(broker.url, { ...durable, unclaimedHold: 0 })
      clients.push(next)
      const strays: string[] = []
      next.on('unclaimed', ({ message }) => strays.push(message.text()))
      await within(next.connect(), 'coming back')
      const probe = await next.subscribe('probe', { qos: 1 })
      await sender.publish('probe', 'x', { qos: 1 })
      await within(probe.next(), 'the probe')
      expect(strays).toEqual([])
    },
  )

  it('the broker dies while disconnect() waits for a handler: it runs to its end, and no longer is waited', async () => {
    const service = await client({ reconnect: { backoff: constant(20) } })
    let ended = false
    const handling = await service.listen(
      'jobs',
      async () => {
        await pause(300)
        ended = true
      },
      { qos: 1 },
    )
    await service.publish('jobs', 'x', { qos: 1 })
    await pause(50)
    const began = Date.now()
    const done = service.disconnect()
    await broker.kill()
    await within(done, 'the end')
    expect(ended).toBe(true)
    expect(Date.now() - began).toBeLessThan(3000)
    await handling.done
    expect(service.state).toBe('closed')
  })

  it('the broker is restarted during drain(): what is in flight and queued arrives', async () => {
    const service = await client({
      clientId: 'sender',
      cleanStart: false,
      reconnect: { backoff: constant(20) },
      outbound: { maxInflight: 10 },
    })
    const receipts = Array.from({ length: 500 }, (_, number) =>
      service.publish('jobs', String(number), { qos: 1 }),
    )
    const done = service.drain({ timeout: 20_000 })
    await broker.kill()
    await broker.live()
    await within(Promise.all(receipts), 'the receipts')
    await within(done, 'the end')
    expect(await service.closed).toBeUndefined()
  })
})
