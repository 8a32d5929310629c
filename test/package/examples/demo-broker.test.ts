/** The broker of the demo with a page that does not read: the others go on. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { connect } from '../../../src/client/node.js'
import { encode } from '../../../src/wire/encode.js'
import { take, within } from '../../real/waiting.js'
import { requireDist } from '../fixture.js'
import { exampleModule } from './program.js'

it('a page that is frozen is thrown out, and everybody else goes on', async () => {
  await requireDist()
  const { startBroker } = await exampleModule('demo/broker.js')
  const broker = await startBroker({ lose: () => false, repeat: () => false })
  const [tcp, webSocket] = broker.urls
  const page = new WebSocket(webSocket, 'mqtt')
  await once(page, 'open')
  page.send(encode({ type: 'connect', clientId: 'frozen', protocolVersion: 5 }))
  page.send(
    encode({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'all/#', qos: 0 }] }),
  )
  await once(page, 'message')
  page.pause()
  const client = await connect(tcp)
  const subscription = await client.subscribe('all/last', { qos: 1 })
  // More than the buffers of the system take.
  for (let count = 0; count < 300; count++)
    await client.publish('all/large', new Uint8Array(65_536))
  await within(client.publish('all/last', 'arrived', { qos: 1 }), 'the acknowledgement')
  expect((await take(subscription)).text()).toBe('arrived')
  page.terminate()
  await client.disconnect({ timeout: 0 })
  await broker.stop()
})
