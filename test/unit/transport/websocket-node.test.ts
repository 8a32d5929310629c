import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { Transport } from '../../../src/transport/transport.js'
import { dialWebSocketNode, listenWebSocket } from '../../../src/transport/websocket-node.js'
import { closed, listening } from '../../support/servers.js'
import { transportContract } from './contract.js'
import { dialledPair, failure, never, opened, pattern, target } from './rig.js'
import { answer, frame, rawServer, websocketSuite } from './websocket-suite.js'

transportContract({
  name: 'websocket on node',
  pair: () => dialledPair((accept) => listenWebSocket({}, accept), dialWebSocketNode),
})
websocketSuite('dialWebSocketNode', dialWebSocketNode)

describe('dialWebSocketNode, Node only', () => {
  it('sends headers and path, and offers no compression', async () => {
    const server = await rawServer((socket, request) => socket.write(answer(request)))
    const headers = { Authorization: 'Bearer abc', 'X-Tenant': 'seven' }
    await opened(dialWebSocketNode, `${server.url}/deep?x=1`, { headers })
    const [request] = server.requests
    expect(request?.url).toBe('/mqtt/deep?x=1')
    expect(request?.headers).toMatchObject({ authorization: 'Bearer abc', 'x-tenant': 'seven' })
    expect(request?.headers).not.toHaveProperty('sec-websocket-extensions')
  })

  it('tells the status of a refused handshake', async () => {
    const server = await rawServer((socket) =>
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'),
    )
    expect(
      (await failure(dialWebSocketNode(target(server.url), { signal: never }))).message,
    ).toContain('403')
    await server.close()
    expect((await failure(dialWebSocketNode(target(server.url), { signal: never }))).code).toBe(
      'ECONNREFUSED',
    )
  })

  it.each([
    [4096, 4096],
    [4097, 0],
  ])('a small message in %i frames: %i bytes of it are taken', async (count, taken) => {
    const frames = Array.from({ length: count }, (_, index) =>
      frame(index === 0 ? 2 : 0, Uint8Array.of(7), index === count - 1),
    )
    const server = await rawServer((socket, request) =>
      socket.write(Buffer.concat([Buffer.from(answer(request)), ...frames])),
    )
    const a = await opened(dialWebSocketNode, server.url, { maximumPacketSize: 1000 })
    if (taken > 0) await a.until(() => a.length >= taken, 'all bytes')
    else await a.untilClosed()
    expect(a.length).toBe(taken)
  })

  it('hands over a message where it lies', async () => {
    const listener = await listenWebSocket({}, (transport) => void transport.write(pattern(10)))
    const near = await dialWebSocketNode(target(listener.url), { signal: never })
    const chunk = await new Promise<Uint8Array>((resolve) => {
      near.open({
        buffer: () => new Uint8Array(1),
        read: () => {},
        chunk: resolve,
        drain: () => {},
        closed: () => {},
      })
    })
    expect(chunk.buffer.byteLength).toBeGreaterThan(10)
    await listener.close()
  })
})

describe('listenWebSocket', () => {
  it('where a server sends it elsewhere, says where without what may be secret there', async () => {
    const location = 'https://admin:SECRET@other.test/mqtt?token=SECRET'
    const server = createServer()
    server.on('upgrade', (_request, socket) =>
      socket.end(
        `HTTP/1.1 301 Moved Permanently\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`,
      ),
    )
    const port = await listening(server)
    const { message } = await failure(
      dialWebSocketNode(target(`ws://127.0.0.1:${port}/old?token=SECRET`), { signal: never }),
    )
    expect(message).toContain('HTTP 301 to https://other.test/mqtt,')
    expect(message).not.toContain('SECRET')
    await closed(server)
  })

  it('shares an HTTP server of the caller, at its path only', async () => {
    const server = createServer((_request, response) => response.end('page'))
    const port = await listening(server)
    const listener = await listenWebSocket({ server, path: '/broker' }, () => {})
    expect(listener.url).toBe(`ws://127.0.0.1:${port}/broker`)
    const a = await opened(dialWebSocketNode, listener.url)
    await failure(dialWebSocketNode(target(`ws://127.0.0.1:${port}/other`), { signal: never }))
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('page')
    await listener.close()
    await a.untilClosed()
    expect(server.listening).toBe(true)
    server.closeAllConnections()
    await closed(server)
  })

  it('closes a client that offers no MQTT sub-protocol (MQTT-6.0.0-4)', async () => {
    const far: Transport[] = []
    const listener = await listenWebSocket({}, (transport) => far.push(transport))
    const socket = new WebSocket(listener.url)
    const code = await new Promise((resolve) => socket.on('close', resolve))
    expect([code, far]).toEqual([1002, []])
    await listener.close()
  })
})
