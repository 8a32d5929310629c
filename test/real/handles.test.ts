/** What is left of clients that came and went: nothing. */
import { expect, it } from 'vitest'
import { Client, type EndpointOptions } from '../../src/client/node.js'
import { identities } from '../support/certificates.js'
import { startMosquitto, type TransportName, withMosquitto } from './brokers.js'
import { eventually, failure, sequence, take, within } from './waiting.js'

const batch = 10

/** How many there are of each kind of thing that keeps a process alive. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

async function lives(endpoint: EndpointOptions, index: number): Promise<void> {
  const client = new Client(endpoint)
  if (index % 5 === 4) {
    // Given up at a different moment each time: while dialling, in the handshake, or at once.
    const abort = new AbortController()
    const error = failure(client.connect({ signal: abort.signal }), 'connecting')
    if (index % 10 === 4) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    expect((await error).name).toBe('AbortError')
    return
  }
  await within(client.connect(), 'connecting')
  if (index % 2 === 0) {
    const subscription = await client.subscribe(`handles/${index}`, { qos: 1 })
    await client.publish(`handles/${index}`, 'x', { qos: 1 })
    await take(subscription)
  }
  if (index % 5 === 0) client.destroy()
  else
    await within(
      client.disconnect(index % 5 === 1 ? { timeout: 0 } : { timeout: 20 }),
      'disconnecting',
    )
}

function cycles(transport: TransportName, tls: EndpointOptions['tls']): void {
  it(`100 quick lives over ${transport} leave no socket and no timer`, async () => {
    const broker = await startMosquitto({ tls: identities() })
    try {
      const endpoint = { url: broker.urls[transport] ?? '', tls }
      // What is made once and kept, such as a TLS context, is made now.
      await lives(endpoint, 1)
      const before = await eventually(() => resources(), 'a first count')
      const listeners = process.eventNames().map((event) => [event, process.listenerCount(event)])
      for (let first = 0; first < 100; first += batch) {
        await Promise.all(sequence(batch).map((offset) => lives(endpoint, first + Number(offset))))
      }
      let more: string[] = []
      await eventually(
        () => {
          const now = resources()
          more = Object.keys(now).filter((kind) => (now[kind] ?? 0) > (before[kind] ?? 0))
          return more.length === 0
        },
        'an end of what the clients used',
        3000,
      ).catch((cause: unknown) => {
        throw new Error(
          `left over: ${more.map((kind) => `${kind} ${before[kind] ?? 0} -> ${resources()[kind]}`).join(', ')}`,
          { cause },
        )
      })
      expect(process.eventNames().map((event) => [event, process.listenerCount(event)])).toEqual(
        listeners,
      )
    } finally {
      await broker.stop()
    }
  })
}

withMosquitto(['TCP', 'TLS', 'WebSocket', 'Unix socket'], (transport) => {
  const { authority } = identities()
  cycles(transport, transport === 'TLS' ? { ca: authority.cert } : undefined)
})
