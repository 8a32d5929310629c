/** The broker in memory on real sockets: listeners by one call, what closing frees, and bytes over TCP and WebSocket (sections 4.2 and 6). */
import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { createServer, connect as dialSocket, Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import WebSocket from 'ws'
import { connect } from '../../src/client/node.js'
import { MemoryBroker as PortableBroker } from '../../src/testing/index.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { within } from '../real/waiting.js'
import { turn } from '../support/pausing.js'
import { bytesOf, hexOf, packetOf, textOf } from './raw-client.js'

const opened: { close(): unknown }[] = []

function broker(...options: ConstructorParameters<typeof MemoryBroker>): MemoryBroker {
  const made = new MemoryBroker(...options)
  opened.push(made)
  return made
}

afterEach(async () => {
  vi.restoreAllMocks()
  for (const each of opened.splice(0).reverse()) await each.close()
})

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  const free = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  if (free) await new Promise((resolve) => server.close(resolve))
  return free
}

describe('serve', () => {
  const remote = expect.stringMatching(/^127\.0\.0\.1:\d+$/)

  it('listens on TCP, WebSocket and a Unix domain socket, says where, and from where clients come', async () => {
    const seen: unknown[] = []
    const made = broker({ authenticate: (_connect, context) => seen.push(context) > 0 })
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'mqwire-serve-')), 'mqtt.sock')
    const served = await made.serve({ tcp: 0, ws: { port: 0, path: '/here' }, unix: file })
    expect(served.urls).toEqual([
      `mqtt://127.0.0.1:${served.tcp?.port}`,
      `ws://127.0.0.1:${served.ws?.port}/here`,
      `unix://${file}`,
    ])
    expect([served.tcp?.url, served.ws?.url, served.unix?.url, served.unix?.port]).toEqual([
      ...served.urls,
      undefined,
    ])
    for (const [index, url] of served.urls.entries()) {
      const client = await connect(url, { clientId: `c${index}` })
      expect(made.clients.get(`c${index}`)?.remote).toEqual(index < 2 ? remote : undefined)
      await client.disconnect()
    }
    expect(seen.slice(0, 2)).toEqual([{ remote }, { remote }])
    await made.close()
    expect(existsSync(file)).toBe(false)
  })

  it('close says goodbye, closes the listeners and frees their ports', async () => {
    const made = broker()
    const { tcp, ws } = await made.serve({ tcp: 0, ws: 0 })
    const client = await connect(tcp?.url ?? '', { reconnect: false })
    const heard = new Promise((resolve) =>
      client.on('serverdisconnect', ({ packet }) => resolve(packet.reasonCode)),
    )
    await within(made.close(), 'close')
    expect(await within(heard, 'the goodbye')).toBe(0x8b)
    expect([await isFree(tcp?.port ?? 0), await isFree(ws?.port ?? 0)]).toEqual([true, true])
    await client.disconnect()
    await expect(made.serve({ tcp: 0 })).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await made.close()
  })

  it('close does not wait for a client that does not answer', async () => {
    const made = broker()
    const { tcp } = await made.serve({ tcp: 0 })
    const socket = dialSocket({ port: tcp?.port ?? 0, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    socket.write(
      Uint8Array.from(bytesOf(packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a')))),
    )
    await expect.poll(() => made.clients.size).toBe(1)
    socket.pause()
    const ended = once(socket, 'close').catch(() => undefined)
    await within(made.close(), 'close')
    expect(await isFree(tcp?.port ?? 0)).toBe(true)
    socket.destroy()
    await ended
  })

  it('listeners can be closed alone, and opened again on the same port', async () => {
    const made = broker()
    await made.serve({ ws: 0 })
    const first = await made.serve({ tcp: 0 })
    const port = first.tcp?.port ?? 0
    for (let i = 0; i < 2; i++) await first.close()
    expect(await isFree(port)).toBe(true)
    const again = await made.serve({ tcp: { port } })
    expect(again.tcp?.port).toBe(port)
    await (await connect(again.urls[0] ?? '')).disconnect()
  })

  it('is a resource of a block, like the broker', async () => {
    const ports: number[] = []
    {
      await using made = new MemoryBroker()
      await using served = await made.serve({ tcp: 0 })
      ports.push(served.tcp?.port ?? 0, (await made.serve({ ws: 0 })).ws?.port ?? 0)
    }
    expect(await Promise.all(ports.map(isFree))).toEqual([true, true])
  })

  it('says the port also where the URL needs none', async () => {
    const address = vi.spyOn(Server.prototype, 'address')
    for (const [port, tls] of [[80], [443, {}]] as const) {
      address.mockReturnValue({ address: '127.0.0.1', family: 'IPv4', port })
      expect((await broker().serve({ ws: { port: 0, tls } })).ws?.port).toBe(port)
    }
  })

  it('opens nothing when one of them cannot be opened', async () => {
    const other = broker()
    const { tcp } = await broker().serve({ tcp: 0 })
    const free = await other.serve({ tcp: 0 })
    const port = free.tcp?.port ?? 0
    await free.close()
    await expect(other.serve({ ws: port, tcp: tcp?.port ?? 0 })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
    expect(await isFree(port)).toBe(true)
  })

  it.each<[object, RegExp]>([
    [{}, /tcp, ws or unix/],
    [{ tpc: 1883 }, /'tpc' is unknown; did you mean 'tcp'/],
    [{ tcp: '1883' }, /tcp must be an object/],
    [{ tcp: -1 }, /tcp\.port must be an integer from 0 to 65535/],
    [{ tcp: { prot: 1 } }, /'prot' is unknown; did you mean 'port'/],
    [{ tcp: { path: '/' } }, /'path' is unknown/],
    [{ ws: { port: 1, path: 5 } }, /ws\.path must be a string/],
    [{ tcp: 0, host: 5 }, /host must be a string/],
    [{ unix: 5 }, /unix must be a string/],
  ])('checks what it is given: %j', async (options, message) => {
    await expect(broker().serve(options)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringMatching(message),
    })
  })

  it('is refused by name where there are no sockets', async () => {
    await expect(new PortableBroker().serve({ tcp: 0 })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED_OPTION',
    })
  })
})

/** CONNECT, SUBSCRIBE, PUBLISH of QoS 1 to itself, PINGREQ: and what must come back. */
const conversation = [
  packetOf('10', textOf('MQTT'), '05 02 00 00 00', textOf('a')),
  packetOf('82', '00 01 00', textOf('t'), '00'),
  packetOf('32', textOf('t'), '00 02 00 78'),
  'c0 00',
].join(' ')
const expected = [
  '20 08 00 00 05 27 00 10 00 00',
  '90 04 00 01 00 00',
  '30 05 00 01 74 00 78',
  '40 02 00 02',
  'd0 00',
].join(' ')

const ways = {
  'all in one': [conversation],
  'byte by byte': conversation.split(' '),
  'in pieces that end inside packets': conversation.match(/(?:.. ?){1,7}/g) ?? [],
}

it.each(Object.entries(ways))(
  'TCP carries both directions in order and without loss, %s [MQTT-4.2.0-1]',
  async (_what, parts) => {
    const { tcp } = await broker({ topicAliasMaximum: 0 }).serve({ tcp: 0 })
    const socket = dialSocket({ host: '127.0.0.1', port: tcp?.port ?? 0, noDelay: true })
    opened.push({ close: () => socket.destroy() })
    const seen: number[] = []
    socket.on('data', (chunk: Uint8Array) => seen.push(...chunk))
    for (const part of parts) {
      socket.write(Uint8Array.from(bytesOf(part)))
      // So that the next part goes by itself.
      await turn()
    }
    await expect.poll(() => hexOf(seen)).toBe(expected)
  },
)

describe('WebSocket', () => {
  async function dial(
    protocols: string[],
  ): Promise<{ socket: WebSocket; frames: [Uint8Array, boolean][] }> {
    const { ws } = await broker({ topicAliasMaximum: 0 }).serve({ ws: 0 })
    const socket = new WebSocket(ws?.url ?? '', protocols)
    const frames: [Uint8Array, boolean][] = []
    socket.on('message', (data: Uint8Array, isBinary) => frames.push([data, isBinary]))
    socket.on('error', () => undefined)
    opened.push({ close: () => socket.terminate() })
    await once(socket, 'open')
    return { socket, frames }
  }

  it.each([[['mqtt']], [['other', 'mqtt']], [['mqtt', 'mqttv3.1']]])(
    'of %j the sub-protocol is mqtt [MQTT-6.0.0-4]',
    async (protocols) => {
      expect((await dial(protocols)).socket.protocol).toBe('mqtt')
    },
  )

  it.each(Object.entries(ways))(
    'frames %s: all is handled, and what comes back is binary [MQTT-6.0.0-1] [MQTT-6.0.0-2]',
    async (_what, parts) => {
      const { socket, frames } = await dial(['mqtt'])
      for (const part of parts) socket.send(Uint8Array.from(bytesOf(part)))
      await expect.poll(() => hexOf(frames.flatMap(([data]) => [...data]))).toBe(expected)
      expect(frames.every(([, isBinary]) => isBinary)).toBe(true)
    },
  )

  it.each(['', 'hello', '\u00c0\u0000'])(
    'a text frame ends the connection, whatever it says: %j [MQTT-6.0.0-1]',
    async (text) => {
      const { socket, frames } = await dial(['mqtt'])
      socket.send(Uint8Array.from(bytesOf(conversation)))
      socket.send(text)
      await once(socket, 'close')
      expect(frames.every(([, isBinary]) => isBinary)).toBe(true)
    },
  )
})
