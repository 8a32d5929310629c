/** The broker with the client that it is made for, as the README shows it. */
import { expect, it } from 'vitest'
import { Client, constant } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/index.js'

it('a service is tested against a broker that restarts', async () => {
  const broker = new MemoryBroker()
  const client = new Client(
    { url: 'mqtt://test', transport: broker.dial },
    { clientId: 'service', cleanStart: false, reconnect: { backoff: constant(10) } },
  )
  await client.connect()
  const jobs = await client.subscribe('jobs/#', { qos: 1 })
  // The second job is taken over, its acknowledgement is lost with the connection.
  broker.faults.add({ packet: 'puback', direction: 'out', nth: 2, action: 'restart-keep' })
  for (const job of ['paint', 'polish']) await client.publish('jobs/1', job, { qos: 1 })
  const texts: string[] = []
  while (texts.length < 3) {
    const message = await jobs.next({ timeout: 5000 })
    texts.push(message?.text() ?? '')
    message?.ack()
  }
  expect(texts).toEqual(['paint', 'polish', 'polish'])
  expect(broker.accepted.map(({ dup }) => dup)).toEqual([false, false, true])
  expect(broker.violations).toEqual([])
  await client.disconnect()
  expect(broker.sessions.get('service')).toMatchObject({ connected: false, queued: 0, inflight: 0 })
  broker.close()
})

it('a client that reads nothing holds up no other', async () => {
  const broker = new MemoryBroker()
  const connected = async (clientId: string): Promise<Client> => {
    const client = new Client(
      { url: 'mqtt://test', transport: broker.dial },
      { clientId, receiveMaximum: 4 },
    )
    await client.connect()
    return client
  }
  const [stalled, other] = [await connected('stalled'), await connected('other')]
  const unread = await stalled.subscribe('a', { qos: 1 })
  const read = await other.subscribe('a', { qos: 1 })
  const onReceive = await other.subscribe('b', { qos: 1, ack: 'on-receive' })
  const sender = await connected('sender')
  for (let number = 0; number < 50; number++)
    for (const topic of ['a', 'b']) await sender.publish(topic, String(number), { qos: 1 })
  for (let number = 0; number < 50; number++)
    expect((await read.next({ timeout: 5000 }))?.text()).toBe(String(number))
  for (let number = 0; number < 50; number++)
    expect((await onReceive.next({ timeout: 5000 }))?.text()).toBe(String(number))
  expect(unread.size).toBe(4)
  for (const client of [stalled, other, sender]) await client.disconnect({ timeout: 0 })
  broker.close()
})
