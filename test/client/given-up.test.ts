/** A connection that gives itself up in the middle of a flush writes nothing more. */
import { expect, it } from 'vitest'
import type { Transport } from '../../src/transport/transport.js'
import { World } from './harness.js'

it('nothing is written to a transport after it was destroyed, not even what the same turn had queued', async () => {
  const calls: string[] = []
  const tapped = (transport: Transport): Transport => ({
    open: (sink) => transport.open(sink),
    write(bytes, written) {
      calls.push('write')
      return transport.write(bytes, written)
    },
    close: () => transport.close(),
    destroy(cause) {
      calls.push('destroy')
      transport.destroy(cause)
    },
  })
  const world = new World({ memoryBudget: 3000 }, {}, 1, (_index, open) => tapped(open()))
  world.answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} } : undefined)
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  world.client.publish('t', 'x'.repeat(40_000)).catch(() => undefined)
  world.client.publish('t', '').catch(() => undefined)
  await world.settle()
  expect(calls).toContain('destroy')
  expect(calls.slice(calls.indexOf('destroy'))).not.toContain('write')
})
