/** The broker with the client that it is made for, as the README shows it. */
import { expect, it } from 'vitest'
import { Client, constant } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/index.js'

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
