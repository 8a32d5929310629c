import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebSocket as NodeWebSocket } from 'ws'
import { dialWebSocket } from '../../../src/transport/websocket.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { pause } from '../../support/pausing.js'
import { transportContract } from './contract.js'
import { dialledPair, failure, never, pattern, Recorder, target } from './rig.js'
import { websocketSuite } from './websocket-suite.js'

const native = globalThis.WebSocket as typeof WebSocket | undefined

/** Runs everything that needs real sockets with this class in place of the platform's. */
function withClass(name: string, given: unknown): void {
  describe(name, () => {
    beforeEach(() => vi.stubGlobal('WebSocket', given))
    afterEach(() => vi.unstubAllGlobals())
    transportContract({
      name: 'websocket',
      pair: () => dialledPair((accept) => listenWebSocket({}, accept), dialWebSocket),
    })
    websocketSuite('dialWebSocket', dialWebSocket)
  })
}

withClass('the class of ws in place of the platform’s', NodeWebSocket)
if (native) withClass('the platform’s own class', native)

class FakeWebSocket {
  static last: FakeWebSocket
  binaryType = 'blob'
  protocol = ''
  bufferedAmount = 0
  onopen: (() => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  onerror: ((event: object) => void) | null = null
  onmessage: ((event: { data: unknown }) => void) | null = null
  readonly sent: number[] = []
  readonly closes: (number | undefined)[] = []
  /** As it was given. */
  readonly url: URL | string
  readonly protocols: string[]

  constructor(url: URL | string, protocols: string[]) {
    this.url = url
    this.protocols = protocols
    FakeWebSocket.last = this
  }

  send(bytes: Uint8Array): void {
    this.sent.push(bytes.length)
  }

  close(code?: number): void {
    // As pages know it: the codes of the protocol are not theirs to send.
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999))
      throw new Error('InvalidAccessError')
    this.closes.push(code)
  }
}

describe('dialWebSocket with a class under control', () => {
  beforeEach(() => vi.stubGlobal('WebSocket', FakeWebSocket))
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  async function connected(): Promise<{ a: Recorder; socket: FakeWebSocket }> {
    const dial = dialWebSocket(target('ws://broker.test/mqtt'), { signal: never })
    const socket = FakeWebSocket.last
    socket.protocol = 'mqtt'
    socket.onopen?.()
    const a = new Recorder(await dial).open()
    await Promise.resolve()
    return { a, socket }
  }

  it('asks for array buffers and the sub-protocol, with the URL as text: all that the class of React Native takes', async () => {
    const { socket } = await connected()
    expect([socket.url, socket.protocols, socket.binaryType]).toEqual([
      'ws://broker.test/mqtt',
      ['mqtt'],
      'arraybuffer',
    ])
  })

  it('messages that come as Blobs or Buffers all the same are read, in order, and before the end', async () => {
    const { a, socket } = await connected()
    const buffer = Buffer.from('xxbcxx').subarray(2, 4)
    let release: (bytes: ArrayBuffer) => void = () => undefined
    const slow = {
      size: 1,
      arrayBuffer: () => new Promise<ArrayBuffer>((resolve) => (release = resolve)),
    }
    for (const data of [
      Buffer.from('a'),
      slow,
      buffer,
      new Blob(['de']),
      new TextEncoder().encode('f').buffer,
    ])
      socket.onmessage?.({ data })
    socket.onclose?.({ code: 1000, reason: '' })
    await pause(20)
    expect([a.bytes.toString(), a.ends]).toEqual(['a', 0])
    release(new TextEncoder().encode('-').buffer as ArrayBuffer)
    await a.untilClosed()
    expect(a.bytes.toString()).toBe('a-bcdef')
    expect(a.cause).toBeUndefined()
  })

  const unreadable = () => Promise.reject(Object.assign(new Error('no'), { code: 'EBLOB' }))
  it.each([
    [
      'a Blob over the limit',
      [{ size: 64 * 1024 * 1024 + 1, arrayBuffer: unreadable }],
      { code: 'ERR_PACKET_TOO_LARGE' },
    ],
    ['one that cannot be read', [{ size: 1, arrayBuffer: unreadable }], { code: 'EBLOB' }],
    ['one of a platform that cannot read any', [{ size: 3 }], { name: 'TypeError' }],
    [
      'many that are over it together',
      Array.from({ length: 65 }, () => ({
        size: 1024 * 1024,
        arrayBuffer: () => new Promise(() => undefined),
      })),
      { message: expect.not.stringContaining('maximumPacketSize') },
    ],
  ])('%s: the stream ends with an error, once', async (_name, blobs, cause) => {
    const { a, socket } = await connected()
    for (const data of blobs) socket.onmessage?.({ data })
    await a.untilClosed()
    expect(a.cause).toMatchObject(cause)
    expect(a.ends).toBe(1)
  })

  it('an error while a Blob is read comes behind it, and nothing is written after a close', async () => {
    const { a, socket } = await connected()
    socket.onmessage?.({ data: new Blob(['de']) })
    socket.onerror?.({})
    socket.onclose?.({ code: 1006, reason: '' })
    expect(a.transport.write(Uint8Array.of(1))).toBe(false)
    expect(socket.sent).toEqual([])
    await a.untilClosed()
    expect([a.bytes.toString(), a.ends]).toEqual(['de', 1])
  })

  it('refuses and closes when no sub-protocol was picked', async () => {
    const dial = dialWebSocket(target('ws://broker.test'), { signal: never })
    FakeWebSocket.last.onopen?.()
    expect((await failure(dial)).message).toContain('sub-protocol')
    expect(FakeWebSocket.last.closes).toEqual([1000])
  })

  it('an error without a close rejects the dial', async () => {
    const dial = dialWebSocket(target('ws://broker.test'), { signal: never })
    FakeWebSocket.last.onerror?.({})
    expect((await failure(dial)).message).toBe(
      'The WebSocket failed: host, port, path, TLS, sub-protocol?',
    )
  })

  it('an error without a close ends the stream once, also when a close comes much later', async () => {
    const { a, socket } = await connected()
    socket.onerror?.({})
    await a.untilClosed()
    socket.onclose?.({ code: 1006, reason: '' })
    socket.onmessage?.({ data: new ArrayBuffer(4) })
    await pause(30)
    expect([a.ends, a.length]).toEqual([1, 0])
    expect(a.cause).toBeInstanceOf(Error)
  })

  it('an error with a close right behind it ends the stream once, with the code', async () => {
    const { a, socket } = await connected()
    socket.onerror?.({})
    socket.onclose?.({ code: 4401, reason: 'expired' })
    await a.untilClosed()
    await pause(30)
    expect(a.ends).toBe(1)
    expect(a.cause).toMatchObject({ code: 4401, reason: 'expired' })
  })

  it('polls bufferedAmount only while it is high, ever more slowly', async () => {
    const { a, socket } = await connected()
    vi.useFakeTimers()
    const done: unknown[] = []
    expect(a.write(pattern(1000), (error) => done.push(error))).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
    await Promise.resolve()
    expect(done).toEqual([undefined])
    socket.bufferedAmount = 200_000
    expect(a.write(pattern(1000), (error) => done.push(error))).toBe(false)
    expect(a.write(pattern(1000), (error) => done.push(error))).toBe(false)
    expect(vi.getTimerCount()).toBe(1)
    const reads = vi.fn(() => 200_000)
    Object.defineProperty(socket, 'bufferedAmount', { get: reads, configurable: true })
    await vi.advanceTimersByTimeAsync(1000)
    expect(reads.mock.calls.length).toBeLessThan(30)
    expect([a.drains, done.length]).toEqual([0, 1])
    Object.defineProperty(socket, 'bufferedAmount', { value: 0, writable: true })
    await vi.advanceTimersByTimeAsync(100)
    expect([a.drains, done, vi.getTimerCount()]).toEqual([1, [undefined, undefined, undefined], 0])
    expect(a.violations).toEqual([])
  })

  it('destroy() while the buffer is high stops the timer and fails what waits', async () => {
    const { a, socket } = await connected()
    vi.useFakeTimers()
    socket.bufferedAmount = 1e6
    const done: unknown[] = []
    a.write(pattern(10), (error) => done.push(error))
    a.destroy(new Error('enough'))
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(100)
    expect(done).toEqual([expect.any(Error)])
    expect([a.ends, socket.closes]).toEqual([1, [1000]])
  })

  it.each([
    [0, undefined],
    [1, expect.any(Error)],
  ])('an orderly end with %i bytes unsent settles what waits', async (unsent, outcome) => {
    const { a, socket } = await connected()
    socket.bufferedAmount = 1e6
    const done: unknown[] = []
    a.write(pattern(10), (error) => done.push(error))
    a.close()
    socket.bufferedAmount = unsent
    socket.onclose?.({ code: 1000, reason: '' })
    await a.untilClosed()
    await pause(30)
    expect([done, a.cause, a.drains]).toEqual([[outcome], undefined, 0])
  })

  it('a send that throws, and a socket that is closing by itself, break nothing', async () => {
    const { a, socket } = await connected()
    socket.send = () => {
      throw new Error('InvalidStateError')
    }
    const done: unknown[] = []
    expect(a.write(pattern(10), (error) => done.push(error))).toBe(false)
    await a.untilClosed()
    expect(done).toEqual([expect.any(Error)])
    expect((a.cause as Error).message).toBe('InvalidStateError')
  })

  it('bounds what is kept before open()', async () => {
    const dial = dialWebSocket(target('ws://broker.test'), { signal: never })
    const socket = FakeWebSocket.last
    socket.protocol = 'mqtt'
    socket.onopen?.()
    const transport = await dial
    for (let count = 0; count < 10; count++)
      socket.onmessage?.({ data: new ArrayBuffer(1024 * 1024) })
    const a = new Recorder(transport).open()
    await a.untilClosed()
    expect(a.length).toBe(0)
    expect(socket.closes.length).toBeGreaterThan(0)
  })

  it('ws: from an https page fails early and names wss', async () => {
    vi.stubGlobal('location', { protocol: 'https:' })
    const error = await failure(dialWebSocket(target('ws://broker.test'), { signal: never }))
    expect(error.code).toBe('ERR_INVALID_BROKER_URL')
    expect(error.message).toContain('wss')
    for (const url of [
      'wss://broker.test',
      'ws://localhost:9001',
      'ws://127.0.0.1',
      'ws://[::1]',
    ]) {
      dialWebSocket(target(url), { signal: never }).catch(() => {})
      expect(FakeWebSocket.last.url).toContain(url)
    }
    vi.stubGlobal('location', { protocol: 'blob:' })
    vi.stubGlobal('origin', 'https://page.test')
    expect((await failure(dialWebSocket(target('ws://broker.test'), { signal: never }))).code).toBe(
      'ERR_INVALID_BROKER_URL',
    )
    vi.stubGlobal('origin', 'http://page.test')
    dialWebSocket(target('ws://plain.test'), { signal: never }).catch(() => {})
    expect(FakeWebSocket.last.url).toContain('plain.test')
  })

  it.each([
    ['headers', { headers: { a: 'b' } }],
    ['tls', { tls: { ca: 'x' } }],
    ['socket', { socket: { noDelay: true } }],
  ])('refuses %s, which pages cannot set', async (option, parts) => {
    const error = await failure(dialWebSocket(target('ws://broker.test', parts), { signal: never }))
    expect([error.code, error.option]).toEqual(['ERR_UNSUPPORTED_OPTION', option])
  })
})
