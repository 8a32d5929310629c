import { MessageChannel } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { messagePortTransport, type Port } from '../../../src/transport/message-port.js'
import { pause } from '../../support/pausing.js'
import { transportContract } from './contract.js'
import { pattern } from './recorder.js'
import { openedOver } from './targets.js'

function ports(): { port1: Port & { close(): void }; port2: Port & { close(): void } } {
  return new MessageChannel() as unknown as { port1: Port; port2: Port }
}

transportContract({
  name: 'message port',
  pair: async () => {
    const { port1, port2 } = ports()
    return { a: messagePortTransport(port1), b: messagePortTransport(port2), cleanup: () => {} }
  },
})

describe('message port', () => {
  it('leaves the written array with its owner, also a Buffer of the shared pool', async () => {
    const { port1, port2 } = ports()
    const a = openedOver(messagePortTransport(port1))
    const b = openedOver(messagePortTransport(port2))
    const pooled = Buffer.from('pooled')
    const own = pattern(10)
    a.write(pooled)
    a.write(own)
    expect([pooled.toString(), own.byteLength]).toEqual(['pooled', 10])
    await b.until(() => b.length === 16)
  })

  it('a peer that only closes its port ends the stream with an error', async () => {
    const { port1, port2 } = ports()
    const a = openedOver(messagePortTransport(port1))
    await pause(30)
    port2.close()
    await a.untilClosed()
    expect(a.cause).toBeInstanceOf(Error)
  })

  it.each(['close', 'destroy'] as const)(
    '%s() reaches a peer whose platform tells nothing of closed ports',
    async (how) => {
      const { port1, port2 } = ports()
      const silent: Port = {
        postMessage: (message, transfer) => port2.postMessage(message, transfer),
        addEventListener: (type, listener) =>
          type !== 'close' && port2.addEventListener(type, listener),
        removeEventListener: (type, listener) => port2.removeEventListener(type, listener),
        start: () => port2.start(),
        close: () => port2.close(),
      }
      const a = openedOver(messagePortTransport(port1))
      const b = openedOver(messagePortTransport(silent))
      a[how]()
      await b.untilClosed()
      expect(b.cause === undefined).toBe(how === 'close')
    },
  )

  it.each([
    ['an object', { length: 3 }],
    ['an unknown word', 'hello'],
    ['a count of nothing', 5],
    ['a negative count', -1],
    ['null', null],
  ])('cuts the stream on %s', async (_name, message) => {
    const { port1, port2 } = ports()
    const a = openedOver(messagePortTransport(port1))
    port2.postMessage(message, [])
    await a.untilClosed()
    expect(a.cause).toBeInstanceOf(Error)
    expect(a.length).toBe(0)
  })

  it('backpressure counts what the peer consumed, not what the port took', async () => {
    const { port1, port2 } = ports()
    const a = openedOver(messagePortTransport(port1))
    while (a.write(pattern(10_000)));
    await pause(30)
    expect(a.drains).toBe(0)
    openedOver(messagePortTransport(port2))
    await a.until(() => a.drains === 1, 'drain')
  })
})
