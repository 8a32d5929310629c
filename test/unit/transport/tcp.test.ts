/** TCP and Unix sockets. */

import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { SocketTransport } from '../../../src/transport/socket.js'
import { portOf } from '../../../src/transport/socket-options.js'
import { dialTcp, listenTcp } from '../../../src/transport/tcp.js'
import type { SocketOptions } from '../../../src/transport/transport.js'
import { dialUnix, listenUnix, pathOf } from '../../../src/transport/unix.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'
import { transportContract } from './contract.js'
import { dialledPair, failure, never, opened, openedOver, pattern, target } from './rig.js'

transportContract({
  name: 'tcp',
  pair: () => dialledPair((accept) => listenTcp({}, accept), dialTcp),
})

const servers: Server[] = []
const sockets: Socket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

async function serve(onSocket: (socket: Socket) => void, allowHalfOpen = false): Promise<string> {
  const server = createServer({ allowHalfOpen }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  servers.push(server)
  return `mqtt://127.0.0.1:${await listening(server)}`
}

type Lookup = NonNullable<SocketOptions['lookup']>
type LookupResult = (error: Error | null, ...rest: unknown[]) => void

describe('dialTcp', () => {
  it('knows the default ports', () => {
    const ports = [
      'mqtt://h',
      'tcp://h',
      'mqtts://h',
      'ssl://h',
      'tls://h',
      'mqtt://h:99',
      'mqtts://[::1]:7',
    ].map((url) => portOf(new URL(url)))
    expect(ports).toEqual([1883, 1883, 8883, 8883, 8883, 99, 7])
  })

  it('rejects with ECONNREFUSED at a closed port', async () => {
    const url = await serve(() => {})
    await new Promise((resolve) => servers.pop()?.close(resolve))
    expect((await failure(dialTcp(target(url), { signal: never }))).code).toBe('ECONNREFUSED')
  })

  it('uses a custom lookup, family and local address', async () => {
    const peers: (string | undefined)[] = []
    const url = new URL(await serve((socket) => peers.push(socket.remoteAddress)))
    const asked: [string, object][] = []
    const lookup = ((name: string, options: { all?: boolean }, callback: LookupResult) => {
      asked.push([name, options])
      if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }])
      else callback(null, '127.0.0.1', 4)
    }) as unknown as Lookup
    const socket = { lookup, family: 4, localAddress: '127.0.0.2', noDelay: false } as const
    await opened(dialTcp, `mqtt://broker.test:${url.port}`, { socket })
    await pause(30)
    expect(asked).toEqual([['broker.test', expect.objectContaining({ family: 4 })]])
    expect(peers).toEqual(['127.0.0.2'])
  })

  it('dials an IPv6 literal', async () => {
    let listener: Awaited<ReturnType<typeof listenTcp>>
    try {
      listener = await listenTcp({ host: '::1' }, () => {})
    } catch (error) {
      // A machine without IPv6 has nothing to dial.
      expect((error as { code?: string }).code).toMatch(/EADDRNOTAVAIL|EAFNOSUPPORT/)
      return
    }
    expect(listener.url).toMatch(/^mqtt:\/\/\[::1\]:\d+$/)
    const a = await opened(dialTcp, listener.url)
    await listener.close()
    await a.untilClosed()
  })

  it('aborted before: dials nothing; aborted during: no socket is left', async () => {
    let connections = 0
    const url = await serve(() => connections++)
    const reason = new Error('changed my mind')
    await expect(dialTcp(target(url), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    const lookup = (() => {}) as unknown as Lookup
    const dial = dialTcp(target('mqtt://never.test', { socket: { lookup } }), {
      signal: controller.signal,
    })
    controller.abort(reason)
    await expect(dial).rejects.toBe(reason)
    const late = new AbortController()
    const other = dialTcp(target(url), { signal: late.signal })
    late.abort(reason)
    await expect(other).rejects.toBe(reason)
    await pause(30)
    expect(connections).toBe(0)
    expect(process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap')).toEqual([])
  })

  it('a connection that is up holds nothing of its dial: an error later is told once, by the transport', async () => {
    const url = await serve((socket) => socket.resume())
    const transport = (await dialTcp(target(url), { signal: never })) as SocketTransport
    const counts = ['connect', 'error', 'close'].map((event) =>
      transport.socket.listenerCount(event),
    )
    // Node's own are in neither: what the transport listens to is all there is.
    expect(counts).toEqual([0, 1, 1])
    transport.destroy()
  })

  it('reads into the memory that the sink lends', async () => {
    const url = await serve((socket) => {
      socket.on('data', (data) => socket.write(data))
    })
    const transport = await dialTcp(target(url), { signal: never })
    const reads: number[] = []
    const chunks: number[] = []
    const lent = new Uint8Array(1000)
    const open = () =>
      new Promise<unknown>((resolve) =>
        transport.open({
          buffer: () => lent,
          read: (length) => {
            reads.push(length)
            if (reads.length === 3) transport.close()
            else transport.write(pattern(700))
          },
          chunk: ({ length }) => {
            chunks.push(length)
            transport.write(pattern(700))
          },
          drain: () => {},
          closed: resolve,
        }),
      )
    transport.write(pattern(500))
    expect(await open()).toBeUndefined()
    expect(chunks).toEqual([500])
    expect(reads).toEqual([700, 700, 700])
    expect(Buffer.from(lent.subarray(0, 700)).equals(pattern(700))).toBe(true)
  })

  it('keeps what several sockets got before open() apart', async () => {
    let count = 0
    const url = await serve((socket) => socket.write(pattern(1000, ++count)))
    const a = await dialTcp(target(url), { signal: never })
    const b = await dialTcp(target(url), { signal: never })
    await pause(30)
    const [one, other] = [openedOver(a), openedOver(b)]
    await one.until(() => one.length === 1000)
    await other.until(() => other.length === 1000)
    expect([one.bytes.equals(pattern(1000, 1)), other.bytes.equals(pattern(1000, 2))]).toEqual([
      true,
      true,
    ])
  })

  it('a half-closed peer ends the stream both ways', async () => {
    let ended = false
    const url = await serve((socket) => {
      socket.end('bye')
      socket.on('end', () => {
        ended = true
      })
      socket.resume()
    }, true)
    const a = await opened(dialTcp, url)
    await a.untilClosed()
    await pause(30)
    expect([a.bytes.toString(), a.cause, ended]).toEqual(['bye', undefined, true])
  })

  it('a reset is an end with the error of the platform', async () => {
    const url = await serve((socket) => setTimeout(() => socket.resetAndDestroy(), 20))
    const a = await opened(dialTcp, url)
    await a.untilClosed()
    expect((a.cause as { code?: string }).code).toBe('ECONNRESET')
    a.write(pattern(1))
    a.destroy()
    await pause(30)
    expect(a.ends).toBe(1)
  })

  it('close() does not wait for ever for a peer that keeps its side open', {
    timeout: 15_000,
  }, async () => {
    const url = await serve((socket) => socket.resume(), true)
    const a = await opened(dialTcp, url)
    const written: unknown[] = []
    a.write(pattern(10), (error) => written.push(error))
    a.close()
    await a.untilClosed()
    expect([a.cause, written]).toEqual([undefined, [undefined]])
  })
})

describe('listenTcp', () => {
  it('rejects when the port is taken', async () => {
    const listener = await listenTcp({}, () => {})
    const port = Number(new URL(listener.url).port)
    expect((await failure(listenTcp({ port }, () => {}))).code).toBe('EADDRINUSE')
    await listener.close()
  })

  it('close() cuts what was accepted and stops accepting', async () => {
    const listener = await listenTcp({}, () => {})
    const a = await opened(dialTcp, listener.url)
    await pause(30)
    await listener.close()
    await a.untilClosed()
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1')
    const error = await new Promise<{ code?: string }>((resolve) => socket.on('error', resolve))
    expect(error.code).toBe('ECONNREFUSED')
  })
})

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'mqwire-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

transportContract({
  name: 'unix',
  pair: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mqwire-'))
    const pair = await dialledPair(
      (accept) => listenUnix({ path: join(folder, 'a socket') }, accept),
      dialUnix,
    )
    const cleanup = async () => {
      await pair.cleanup()
      await rm(folder, { recursive: true })
    }
    return { ...pair, cleanup }
  },
})

describe('unix', () => {
  it('takes both URL forms, with percent escapes', () => {
    const paths = ['unix:///run/mqtt.sock', 'unix:/run/mqtt.sock', 'unix:///run/a%20b.sock'].map(
      (url) => pathOf(new URL(url)),
    )
    expect(paths).toEqual(['/run/mqtt.sock', '/run/mqtt.sock', '/run/a b.sock'])
  })

  it('rejects with ENOENT where there is no socket, and with the reason when aborted', async () => {
    await inFolder(async (folder) => {
      const nowhere = target(`unix://${folder}/none`)
      expect((await failure(dialUnix(nowhere, { signal: never }))).code).toBe('ENOENT')
      const reason = new Error('changed my mind')
      await expect(dialUnix(nowhere, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    })
  })

  it('never takes over a path that is in use', async () => {
    await inFolder(async (folder) => {
      const path = join(folder, 's')
      const listener = await listenUnix({ path }, () => {})
      expect((await failure(listenUnix({ path }, () => {}))).code).toBe('EADDRINUSE')
      await listener.close()
    })
  })
})
