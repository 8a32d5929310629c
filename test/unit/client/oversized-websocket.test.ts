/** A message that a transport cannot take: WebSocket holds whole messages, and has a limit of its own. */
import { expect, it } from 'vitest'
import type { Transport } from '../../../src/transport/transport.js'
import { sizeError } from '../../../src/transport/websocket-rules.js'
import { lasting } from './across.js'
import { agreeable, World } from './harness.js'

it('ends the connection with its name, the limit and the way out; the log says so, `stats()` counts it, and the client comes back', async () => {
  const log: string[] = []
  const links: Transport[] = []
  const options = { ...lasting, stats: true, logger: { warn: (text: string) => log.push(text) } }
  const world = new World(options, {}, 1, (_index, open) => {
    const link = open()
    links.push(link)
    return link
  })
  world.answer = agreeable
  await Promise.all([world.client.connect(), world.settle()])
  links[0]?.destroy(sizeError(4000, 5000))
  await world.clock.advance(100)
  const error = { code: 'ERR_PACKET_TOO_LARGE', fault: 'remote', message: expect.stringMatching(/5000.*4000.*maximumPacketSize/) }
  expect(world.seen('disconnect')).toMatchObject([{ error }])
  expect(log[0]).toContain('the connection ended: a WebSocket message of 5000 bytes')
  expect(world.client.stats().tooLarge).toBe(1)
  expect(world.client.state).toBe('connected')
})
