/**
 * The client with signed URLs: a server by hand sees what is dialled, at the first attempt and at each reconnect.
 */
import { createServer } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { sigv4 } from '../../../src/aws/index.js'
import { Client } from '../../../src/client/node.js'
import { connack } from '../../lab/budgets/bytes.js'
import { within } from '../../real/waiting.js'
import { listening } from '../../support/servers.js'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A WebSocket server that answers CONNECT, and keeps the query of each handshake; the first connection is cut. */
async function server(): Promise<{ url: string; queries: URLSearchParams[] }> {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, handleProtocols: () => 'mqtt' })
  const queries: URLSearchParams[] = []
  sockets.on('connection', (socket, request) => {
    queries.push(new URL(request.url ?? '', 'http://localhost').searchParams)
    socket.once('message', () => {
      socket.send(connack())
      if (queries.length === 1) setImmediate(() => socket.terminate())
    })
  })
  const port = await listening(http)
  open.push(() => {
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
    http.close()
  })
  return { url: `ws://127.0.0.1:${port}/mqtt`, queries }
}

it('a reconnect is signed anew, and no event shows the signature or the token', async () => {
  const { url, queries } = await server()
  const told: unknown[] = []
  let turn = 0
  const client = new Client(url, {
    credentials: sigv4({
      region: 'eu-west-1',
      credentials: async () => {
        turn += 1
        return {
          accessKeyId: `AK${turn}`,
          secretAccessKey: 'a-secret-key',
          sessionToken: `a-token-${turn}`,
        }
      },
      now: () => Date.UTC(2026, 0, 1) + turn * 1000,
    }),
    reconnect: { backoff: () => 1 },
  })
  for (const type of ['state', 'connect', 'disconnect', 'reconnecting', 'connecterror'] as const)
    client.on(type, (event) => told.push([type, event]))
  const again = new Promise<void>((resolve) =>
    client.on('connect', () => queries.length === 2 && resolve()),
  )
  await client.connect()
  await within(again, 'the second connection')
  await client.disconnect()
  expect(queries.map((query) => query.get('X-Amz-Date'))).toEqual([
    '20260101T000001Z',
    '20260101T000002Z',
  ])
  expect(queries.map((query) => query.get('X-Amz-Security-Token'))).toEqual([
    'a-token-1',
    'a-token-2',
  ])
  const [first, second] = queries.map((query) => query.get('X-Amz-Signature'))
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  expect(second).not.toBe(first)
  for (const secret of ['a-secret-key', 'a-token', 'X-Amz'])
    expect(JSON.stringify(told)).not.toContain(secret)
})
