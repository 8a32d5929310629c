/**
 * Rows about transports that only show with a whole client: errors after the end, proxies, refused handshakes, and the client of browsers in a worker.
 *
 * The servers speak by hand; nothing of the package stands on both sides.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import * as esbuild from 'esbuild'
import { afterEach, describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import type { MqttError } from '../../../src/errors.js'
import { connack, packet, publish, uint16 } from '../../lab/budgets/bytes.js'
import { dataFrame, FrameReader, shake } from '../../lab/budgets/frames.js'
import { root } from '../../package/fixture.js'
import { within } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'

const open: (() => unknown)[] = []

afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** What a server by hand does with each packet of the client; `send` frames where the stream has frames. */
type Reaction = (bytes: Buffer, send: (bytes: Uint8Array) => void, socket: Socket) => void

/** A server for `mqtt:` or `ws:`; gives its URL. */
async function serve(scheme: string, react: Reaction): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    void accept(scheme, socket, react)
  })
  const port = await listening(server)
  open.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `${scheme}://127.0.0.1:${port}/mqtt`
}

async function accept(scheme: string, socket: Socket, react: Reaction): Promise<void> {
  const framed = scheme === 'ws'
  if (framed) await shake(socket)
  const send = (bytes: Uint8Array): void => void socket.write(framed ? dataFrame(bytes) : bytes)
  const reader = new FrameReader((bytes) => react(bytes, send, socket))
  socket.on('data', (bytes: Buffer) => (framed ? reader.push(bytes) : react(bytes, send, socket)))
}

/** Answers CONNECT; what the server does at DISCONNECT is the test's. */
const politeUntil =
  (end: (socket: Socket, send: (bytes: Uint8Array) => void) => void): Reaction =>
  (bytes, send, socket) => {
    if (bytes[0] === 0x10) send(connack())
    // Several packets may share a read: DISCONNECT is the last.
    else if (bytes.includes(Buffer.of(0xe0, 0x00))) end(socket, send)
  }

describe.each(['mqtt', 'ws'])('after the end, over %s', (scheme) => {
  it.each([
    ['resets the stream', (socket: Socket) => void socket.resetAndDestroy()],
    [
      'sends more',
      (socket: Socket, send: (bytes: Uint8Array) => void) => {
        for (let count = 0; count < 20; count++) send(publish({ topic: 'late' }))
        socket.end()
      },
    ],
    [
      'sends garbage and resets',
      (socket: Socket) => {
        socket.write(Buffer.alloc(1000, 0xff))
        setTimeout(() => socket.resetAndDestroy(), 5)
      },
    ],
  ] as const)('a server that %s is not heard any more', async (_name, end) => {
    const url = await serve(scheme, politeUntil(end))
    const client = new Client(url, { reconnect: false })
    const events: string[] = []
    const escaped: unknown[] = []
    const note = (error: unknown): void => void escaped.push(error)
    process.on('unhandledRejection', note).on('uncaughtException', note)
    for (const type of [
      'disconnect',
      'connecterror',
      'error',
      'serverdisconnect',
      'unclaimed',
      'drop',
    ] as const)
      client.on(type, () => events.push(type))
    await client.connect()
    await client.disconnect()
    expect(await within(client.closed, 'the end')).toBeUndefined()
    await new Promise((resolve) => setTimeout(resolve, 30))
    process.off('unhandledRejection', note).off('uncaughtException', note)
    expect([events, escaped]).toEqual([['disconnect'], []])
  })

  it('an error of the transport in the middle is one disconnect, with its cause', async () => {
    const url = await serve(scheme, (bytes, send, socket) => {
      if (bytes[0] !== 0x10) return
      send(connack())
      setTimeout(() => socket.resetAndDestroy(), 20)
    })
    const client = new Client(url, { reconnect: false })
    const causes: (MqttError | undefined)[] = []
    client.on('disconnect', ({ cause }) => causes.push(cause))
    await client.connect()
    const error = await within(client.closed, 'the end')
    expect(error?.code).toBe('ERR_CONNECTION_LOST')
    await pause(30)
    expect(causes).toEqual([error])
  })
})

describe('a WebSocket handshake that is refused', () => {
  it.each([
    ['200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'],
    ['401', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'],
    ['503', 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'],
    [
      '101 without an accept key',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    ],
    ['101 without an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['no HTTP', '\u0020\u0003\u0000\u0000\u0000'],
    ['a header without an end', `HTTP/1.1 101 Switching Protocols\r\nX: ${'x'.repeat(100_000)}`],
  ])('by %s is ERR_CONNECT_FAILED, and no byte of MQTT is sent', async (_name, answer) => {
    const came: Buffer[] = []
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (bytes: Buffer) => {
        came.push(bytes)
        socket.end(answer)
      })
    })
    const port = await listening(server)
    open.push(() => server.close())
    const client = new Client(`ws://127.0.0.1:${port}/mqtt`, {
      reconnect: false,
      connectTimeout: 2000,
    })
    const error = await client.connect().then(
      () => undefined,
      (reason: MqttError) => reason,
    )
    expect(error).toMatchObject({ code: 'ERR_CONNECT_FAILED', outcome: 'not-sent' })
    expect(Buffer.concat(came).includes('MQTT')).toBe(false)
  })
})

it.each([
  'socks://proxy.test:1080',
  'socks4://proxy.test:1080',
  'socks5://proxy.test:1080',
  'socks5h://proxy.test:1080',
  'http://proxy.test:3128',
  'https://proxy.test',
])(
  '%s is no endpoint without a transport of its own: a typed error before anything is dialled',
  (url) => {
    expect(() => new Client(url)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_BROKER_URL' }),
    )
    expect(
      () => new Client({ url, transport: () => Promise.reject(new Error('never dialled')) }),
    ).not.toThrow()
  },
)

describe('the client for browsers in a worker', () => {
  it('is one bundle without a Node builtin, and connects, subscribes and receives there', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-worker-'))
    open.push(() => rmSync(folder, { recursive: true, force: true }))
    const outfile = path.join(folder, 'client.mjs')
    const entry = {
      contents: "export { connect } from './src/client/browser.ts'",
      resolveDir: root,
    }
    await esbuild.build({
      stdin: entry,
      outfile,
      bundle: true,
      platform: 'browser',
      format: 'esm',
      target: 'es2022',
      logLevel: 'silent',
    })
    const url = await serve('ws', (bytes, send) => {
      if (bytes[0] === 0x10) send(connack())
      if (bytes[0] === 0x82) {
        send(packet(0x90, uint16(bytes.readUInt16BE(2)), 0, 0))
        send(publish({ topic: 'a/b', payload: 'hello' }))
      }
    })
    // Only the class of browsers is put in place; everything else is the worker's own.
    const program = `
      const { parentPort, workerData } = require('node:worker_threads')
      const { WebSocket } = require(workerData.ws)
      globalThis.WebSocket = WebSocket
      import(workerData.client).then(async ({ connect }) => {
        const client = await connect(workerData.url)
        for await (const message of await client.subscribe('a/#')) {
          parentPort.postMessage([message.topic, message.text(), typeof window, client.state])
          break
        }
        await client.disconnect()
        parentPort.postMessage(await client.closed === undefined ? 'closed' : 'broken')
      }).catch((error) => parentPort.postMessage(String(error)))`
    const worker = new Worker(program, {
      eval: true,
      workerData: { client: outfile, url, ws: path.join(root, 'node_modules', 'ws') },
    })
    open.push(() => worker.terminate())
    const said: unknown[] = []
    await within(
      new Promise<void>((resolve, reject) => {
        worker.on('message', (message) => said.push(message) === 2 && resolve())
        worker.on('error', reject)
      }),
      `the worker; it said ${JSON.stringify(said)}`,
    )
    expect(said).toEqual([['a/b', 'hello', 'undefined', 'connected'], 'closed'])
  })
})
