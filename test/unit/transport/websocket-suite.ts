/** What both WebSocket transports have to do against servers that speak HTTP and WebSocket frames by hand, so that nothing of the code under test stands on both sides. */

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Dial } from '../../../src/transport/transport.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'
import { failure, never, opened, pattern, type Recorder, target } from './rig.js'

export interface RawServer {
  readonly url: string
  readonly requests: IncomingMessage[]
  close(): Promise<void>
}

/** Answers upgrade requests by `upgrade`, and plain ones with 404, until the test ends. */
export async function rawServer(
  upgrade: (socket: Socket, request: IncomingMessage) => void,
): Promise<RawServer> {
  const requests: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const server = createServer((_request, response) => response.writeHead(404).end())
  server.on('connection', (socket) => {
    sockets.add(socket)
    // HTTP servers leave their side open.
    socket.on('end', () => socket.end())
    socket.on('error', () => {})
  })
  server.on('upgrade', (request, socket) => {
    requests.push(request)
    upgrade(socket as Socket, request)
  })
  const port = await listening(server)
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  return { url: `ws://127.0.0.1:${port}/mqtt`, requests, close }
}

/** The 101 answer. `changes` replaces headers; undefined leaves one out. */
export function answer(
  request: IncomingMessage,
  changes: Record<string, string | undefined> = {},
): string {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const headers: Record<string, string | undefined> = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Accept': createHash('sha1').update(key).digest('base64'),
    'Sec-WebSocket-Protocol': 'mqtt',
    ...changes,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  )
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`
}

/** A server's frame: 1 text, 2 binary, 0 continuation, 8 close. */
export function frame(opcode: number, payload: Uint8Array, final = true): Buffer {
  const first = (final ? 0x80 : 0) | opcode
  const { length } = payload
  const header =
    length < 126
      ? [first, length]
      : length < 65536
        ? [first, 126, length >> 8, length & 255]
        : [first, 127, 0, 0, 0, 0, ...bytesOf(length)]
  return Buffer.concat([Buffer.from(header), payload])
}

function bytesOf(length: number): number[] {
  return [length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255]
}

export function closeFrame(code: number, reason: string): Buffer {
  return frame(8, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]))
}

export function websocketSuite(name: string, dial: Dial): void {
  describe(name, () => {
    /** Dials a server that sends these frames after the handshake. */
    async function receive(
      frames: Buffer,
      options: { maximumPacketSize?: number } = {},
    ): Promise<Recorder> {
      const { url } = await rawServer((socket, request) => {
        socket.write(answer(request))
        setTimeout(() => socket.write(frames), 20)
        // The client writes nothing but its close frame.
        socket.on('data', () => socket.end())
      })
      return opened(dial, url, options)
    }

    it('offers mqtt and connects when the server picks it (MQTT-6.0.0-3)', async () => {
      const { url, requests } = await rawServer((socket, request) => socket.write(answer(request)))
      await opened(dial, url)
      expect(requests[0]?.headers['sec-websocket-protocol']).toBe('mqtt')
    })

    it('offers every given sub-protocol', async () => {
      const { url, requests } = await rawServer((socket, request) =>
        socket.write(answer(request, { 'Sec-WebSocket-Protocol': 'mqttv3.1' })),
      )
      await opened(dial, url, { protocols: ['mqtt', 'mqttv3.1'] })
      expect(requests[0]?.headers['sec-websocket-protocol']?.replace(' ', '')).toBe('mqtt,mqttv3.1')
    })

    it.each([
      ['picks no sub-protocol', { 'Sec-WebSocket-Protocol': undefined }],
      ['picks a sub-protocol that was not offered', { 'Sec-WebSocket-Protocol': 'chat' }],
      [
        'answers with a wrong accept key',
        { 'Sec-WebSocket-Accept': 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
      ],
      ['answers without an accept key', { 'Sec-WebSocket-Accept': undefined }],
      ['answers with another upgrade', { Upgrade: 'h2c' }],
      ['forces permessage-deflate', { 'Sec-WebSocket-Extensions': 'x-unknown' }],
    ])('rejects when the server %s', async (_name, changes) => {
      let closed = false
      const { url } = await rawServer((socket, request) => {
        socket.on('close', () => {
          closed = true
        })
        socket.resume()
        socket.write(answer(request, changes))
      })
      expect((await failure(dial(target(url), { signal: never }))).message).not.toBe('')
      await pause(30)
      expect(closed).toBe(true)
    })

    it.each([
      ['404', 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'],
      ['401', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'],
      ['200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'],
      ['101 without an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
      ['no HTTP at all', 'hello\r\n\r\n'],
      ['a header without an end', `HTTP/1.1 101 Switching\r\nX: ${'x'.repeat(100_000)}`],
    ])('rejects when the answer is %s', async (_name, text) => {
      const { url } = await rawServer((socket) => socket.end(text))
      await failure(dial(target(url), { signal: never }))
    })

    it('never follows a redirect', async () => {
      const second = await rawServer((socket, request) => socket.write(answer(request)))
      const { url } = await rawServer((socket) =>
        socket.end(`HTTP/1.1 302 Found\r\nLocation: ${second.url}\r\nContent-Length: 0\r\n\r\n`),
      )
      await failure(dial(target(url), { signal: never }))
      await pause(30)
      expect(second.requests).toEqual([])
    })

    it('rejects with the reason when aborted, before and during the handshake', async () => {
      let closed = false
      const { url, requests } = await rawServer((socket) => {
        socket.on('close', () => {
          closed = true
        })
        socket.resume()
      })
      const reason = new Error('changed my mind')
      await expect(dial(target(url), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
      expect(requests).toEqual([])
      const controller = new AbortController()
      const dialled = dial(target(url), { signal: controller.signal })
      const rejected = expect(dialled).rejects.toBe(reason)
      await pause(30)
      controller.abort(reason)
      await rejected
      await pause(30)
      expect([requests.length, closed]).toEqual([1, true])
    })

    it('takes several packets in one message, one packet over several messages and over fragments (MQTT-6.0.0-2)', async () => {
      const data = pattern(1000)
      const part = (from: number, to: number) => data.subarray(from, to)
      const frames = [
        frame(2, part(0, 500)),
        frame(2, part(500, 501)),
        frame(2, part(501, 700), false),
        frame(0, part(700, 701), false),
        frame(0, part(701, 1000)),
      ]
      const a = await receive(Buffer.concat(frames))
      await a.until(() => a.length >= 1000, 'all bytes')
      expect(a.bytes.equals(data)).toBe(true)
    })

    it('a text message ends the stream with an error; nothing of it is delivered (MQTT-6.0.0-1)', async () => {
      const a = await receive(
        Buffer.concat([frame(2, pattern(3)), frame(1, Buffer.from('hello')), frame(2, pattern(4))]),
      )
      await a.untilClosed()
      expect((a.cause as Error).message).toContain('text message')
      expect(a.length).toBe(3)
    })

    it('a message over the limit ends the stream with an error; one below does not', async () => {
      const limit = 1000 + 256 * 1024
      const a = await receive(
        Buffer.concat([frame(2, pattern(limit)), frame(2, pattern(limit + 1))]),
        { maximumPacketSize: 1000 },
      )
      await a.untilClosed()
      // With the limit and the way out, also where the platform says something else.
      expect(a.cause).toMatchObject({
        code: 'ERR_PACKET_TOO_LARGE',
        fault: 'remote',
        message: expect.stringMatching(`${limit}.*maximumPacketSize`),
      })
      expect(a.length).toBe(limit)
    })

    it('a message over the limit ends the stream even if the server never closes its side', async () => {
      const { url } = await rawServer((socket, request) => {
        socket.write(answer(request))
        setTimeout(() => socket.write(frame(2, pattern(300_000))), 20)
      })
      const a = await opened(dial, url, { maximumPacketSize: 100 })
      await a.until(() => a.ends > 0, 'closed()', 2000)
      expect([a.length, a.cause]).toEqual([0, expect.any(Error)])
    })

    it('a close code and its reason reach the cause, made printable', async () => {
      const a = await receive(closeFrame(4401, 'expired\u001b[31m'))
      await a.untilClosed()
      expect(a.cause).toMatchObject({
        message: 'WebSocket closed with 4401 expired\\u{1b}[31m',
        code: 4401,
        reason: 'expired\u001b[31m',
      })
    })

    it.each([
      ['1000', closeFrame(1000, 'bye')],
      ['no code', frame(8, new Uint8Array(0))],
    ])('a close with %s is an orderly end', async (_name, close) => {
      const a = await receive(close)
      await a.untilClosed()
      expect(a.cause).toBeUndefined()
    })

    it('a socket that ends without a close frame is an error', async () => {
      const { url } = await rawServer((socket, request) => {
        socket.write(answer(request))
        setTimeout(() => socket.destroy(), 20)
      })
      const a = await opened(dial, url)
      await a.untilClosed()
      expect(a.cause).toMatchObject({ code: 1006 })
    })

    it('writes messages of at most 64 KiB', async () => {
      const heads: number[] = []
      let kinds = 0
      let received = Buffer.alloc(0)
      const { url } = await rawServer((socket, request) => {
        socket.write(answer(request))
        socket.on('data', (data: Buffer) => {
          received = Buffer.concat([received, data])
          for (
            let size = frameSize(received);
            size && received.length >= size.total;
            size = frameSize(received)
          ) {
            heads.push(size.payload)
            kinds |= received[0] as number
            received = received.subarray(size.total)
          }
        })
      })
      const a = await opened(dial, url)
      a.write(pattern(150_000))
      await pause(100)
      expect(heads).toEqual([65536, 65536, 150_000 - 131_072])
      expect(kinds).toBe(0x82)
    })
  })
}

// Length of the client's frame at the start of these bytes, once its head is there.
function frameSize(bytes: Buffer): { payload: number; total: number } | undefined {
  if (bytes.length < 10) return undefined
  const short = (bytes[1] as number) & 127
  if (short < 126) return { payload: short, total: 6 + short }
  const payload = short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  return { payload, total: payload + (short === 126 ? 8 : 14) }
}
