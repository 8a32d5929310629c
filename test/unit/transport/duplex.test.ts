/**
 * Transports over Duplex streams: the contract over several kinds of them, streams that behave badly, what is refused, and functions that open them.
 */
import { connect, createServer } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { duplexTransport } from '../../../src/transport/duplex.js'
import { connack } from '../../lab/budgets/bytes.js'
import { within } from '../../real/waiting.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'
import { type Pair, transportContract } from './contract.js'
import { duplexPair, failure, never, openedOver, pattern, Recorder } from './rig.js'

for (const [name, highWaterMark] of [
  ['', undefined],
  [' that takes a byte at a time', 1],
] as const)
  transportContract({
    name: `duplex in memory${name}`,
    pair: async (): Promise<Pair> => {
      const [one, two] = duplexPair(highWaterMark)
      return { a: duplexTransport(one), b: duplexTransport(two), cleanup: () => undefined }
    },
  })

const escaped: unknown[] = []
const note = (error: unknown): void => void escaped.push(error)
process.on('uncaughtException', note).on('unhandledRejection', note)

afterEach(() => {
  vi.useRealTimers()
  expect(escaped.splice(0)).toEqual([])
})

/** What a stream of the tests does with writes, its end and its being destroyed; it reads nothing by itself. */
interface Habits {
  readonly write?: (bytes: Buffer, done: (error?: Error | null) => void) => void
  readonly final?: (done: () => void) => void
  readonly destroy?: (done: () => void) => void
  readonly options?: object
}

function stream({ write, final, destroy, options }: Habits = {}): Duplex {
  return new Duplex({
    read: () => undefined,
    write: (bytes, _encoding, done) => (write ? write(bytes, done) : done()),
    final: (done) => (final ? final(done) : done()),
    ...(destroy && {
      destroy: (_error: Error | null, done: (error?: Error | null) => void) => destroy(done),
    }),
    ...options,
  })
}

const recorded = (over: Duplex): Recorder => new Recorder(duplexTransport(over))

async function opened(over: Duplex): Promise<Recorder> {
  const recorder = openedOver(duplexTransport(over))
  await pause(1)
  return recorder
}

describe('bytes', () => {
  it('that come from inside write() are delivered after it, in order and as they were', async () => {
    // What a PassThrough is written, it gives at once.
    const recorder = await opened(new PassThrough())
    const bytes = pattern(1000)
    recorder.write(bytes)
    recorder.write(pattern(10, 7))
    await recorder.until(() => recorder.length === 1010, 'both')
    expect(recorder.bytes.equals(Buffer.concat([pattern(1000), pattern(10, 7)]))).toBe(true)
    expect(recorder.violations).toEqual([])
    recorder.close()
    await recorder.untilClosed()
    expect([recorder.cause, recorder.ends, recorder.violations]).toEqual([undefined, 1, []])
  })

  it('wait in the stream while paused, and before open()', async () => {
    // Whoever made it had it flow.
    const over = stream({ options: { readableHighWaterMark: 4 } }).resume()
    await pause(1)
    const recorder = recorded(over)
    recorder.transport.resume?.()
    expect(over.push(pattern(10))).toBe(false)
    await pause(10)
    expect([recorder.length, over.readableLength]).toEqual([0, 10])
    recorder.open()
    await recorder.until(() => recorder.length === 10, 'ten bytes')
    recorder.transport.pause?.()
    over.push(pattern(5))
    await pause(10)
    expect(recorder.length).toBe(10)
    recorder.transport.resume?.()
    await recorder.until(() => recorder.length === 15, 'the others')
  })

  it('that are none cut the stream', async () => {
    const over = stream()
    const recorder = await opened(over)
    over.emit('data', 'text')
    await recorder.untilClosed()
    expect(String(recorder.cause)).toContain('not bytes')
    expect([over.destroyed, recorder.length]).toEqual([true, 0])
  })
})

describe('a drain', () => {
  it('that comes from inside write() is told after it', async () => {
    const over = stream()
    const recorder = await opened(over)
    const own = over.write.bind(over) as (bytes: Uint8Array, done: () => void) => boolean
    over.write = ((bytes: Uint8Array, done: () => void) => {
      own(bytes, done)
      over.emit('drain')
      return false
    }) as never
    expect([recorder.write(pattern(3)), recorder.drains]).toEqual([false, 0])
    await recorder.until(() => recorder.drains === 1, 'drain()')
    expect(recorder.violations).toEqual([])
  })

  it('that comes from inside write() and is followed by a cut is not told', async () => {
    const over = stream({ write: () => void over.emit('drain') })
    const recorder = await opened(over)
    recorder.write(pattern(3))
    recorder.destroy()
    await recorder.untilClosed()
    expect([recorder.drains, recorder.violations]).toEqual([0, []])
  })
})

describe('an end', () => {
  it('of the peer ends our side too, which stays open by default, after what was written', async () => {
    const written: Buffer[] = []
    const over = stream({
      write: (bytes, done) => setTimeout(() => done(void written.push(bytes)), 5),
    })
    const recorder = await opened(over)
    recorder.write(pattern(3))
    over.push(null)
    await recorder.untilClosed()
    expect([recorder.cause, Buffer.concat(written).length, over.destroyed]).toEqual([
      undefined,
      3,
      true,
    ])
  })

  it.each([
    ['ours that no peer follows', false],
    ['the peer while our writes never end', true],
  ])('of %s is a cut after 5 seconds, and writes that are open fail', async (_whose, ofPeer) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const over = stream(ofPeer ? { write: () => undefined } : {})
    const recorder = recorded(over).open()
    await Promise.resolve()
    const errors: unknown[] = []
    recorder.write(pattern(3), (error) => errors.push(error))
    if (ofPeer) over.push(null)
    else recorder.close()
    await vi.advanceTimersByTimeAsync(4_900)
    expect(recorder.ends).toBe(0)
    await vi.advanceTimersByTimeAsync(200)
    vi.useRealTimers()
    await recorder.untilClosed()
    await pause(1)
    expect([recorder.ends, recorder.cause, over.destroyed]).toEqual([1, undefined, true])
    expect(errors).toEqual([ofPeer ? expect.any(Error) : undefined])
  })

  it('that is none, as the stream just closes, is an error', async () => {
    const over = stream()
    const recorder = await opened(over)
    over.destroy()
    await recorder.untilClosed()
    expect(String(recorder.cause)).toContain('closed before its end')
  })

  it('by an error is told once, with it; a later one is nobody’s', async () => {
    const over = stream()
    const recorder = await opened(over)
    const error = new Error('the line is dead')
    over.destroy(error)
    await recorder.untilClosed()
    over.emit('error', new Error('and still is'))
    await pause(5)
    expect([recorder.ends, recorder.cause, recorder.violations]).toEqual([1, error, []])
  })

  it.each([
    ['emits no close', { emitClose: false }],
    ['neither destroys itself nor emits close', { emitClose: false, autoDestroy: false }],
    ['does not destroy itself', { autoDestroy: false }],
  ])(
    'of a stream that %s is told all the same: close(), destroy(), error',
    async (_name, options) => {
      const [first, second, third] = [stream({ options }), stream({ options }), stream({ options })]
      const [closed, failed, cut] = [
        recorded(first).open(),
        recorded(second).open(),
        recorded(third).open(),
      ]
      await pause(1)
      const error = new Error('broken')
      closed.close()
      first.push(null)
      second.emit('error', error)
      cut.destroy(error)
      await Promise.all([closed, failed, cut].map((recorder) => recorder.untilClosed()))
      expect([closed, failed, cut].map(({ ends, cause }) => [ends, cause])).toEqual([
        [1, undefined],
        [1, error],
        [1, error],
      ])
      expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([true, true, true])
    },
  )

  it('of a stream that never answers its being destroyed is told, and its writes fail', async () => {
    const over = stream({ write: () => undefined, destroy: () => undefined })
    const recorder = recorded(over).open()
    const errors: unknown[] = []
    recorder.write(pattern(3), (error) => errors.push(error))
    recorder.destroy()
    await recorder.untilClosed()
    await pause(1)
    expect([recorder.ends, errors]).toEqual([1, [expect.any(Error)]])
  })

  it('by a write that throws is told with what it threw, and the write fails once', async () => {
    const error = new Error('no pipe')
    const over = stream({
      write: () => {
        throw error
      },
    })
    const recorder = await opened(over)
    const errors: unknown[] = []
    expect(recorder.write(pattern(3), (reason) => errors.push(reason))).toBe(false)
    await recorder.untilClosed()
    await pause(1)
    expect([recorder.cause, errors.length]).toEqual([error, 1])
  })

  it('by a write that fails is told with its error, and each write fails once', async () => {
    const error = new Error('no pipe')
    const over = stream({ write: (_bytes, done) => setImmediate(() => done(error)) })
    const recorder = await opened(over)
    const errors: unknown[] = []
    recorder.write(pattern(3), (reason) => errors.push(reason))
    recorder.write(pattern(3), (reason) => errors.push(reason))
    await recorder.untilClosed()
    await pause(1)
    expect([recorder.cause, errors.length, errors[0]]).toEqual([error, 2, error])
  })
})

/** A stream one of whose methods throws, once it is armed. */
function throwing(method: 'pause' | 'resume' | 'end' | 'destroy'): {
  over: Duplex
  error: Error
  arm: () => void
} {
  // One that destroys itself would throw at nobody.
  const over = stream({ options: { autoDestroy: false } })
  const error = new Error(`no ${method}()`)
  const own = over[method].bind(over) as () => Duplex
  let isArmed = false
  const arm = () => {
    isArmed = true
  }
  over[method] = () => {
    if (isArmed) throw error
    return own()
  }
  return { over, error, arm }
}

describe('a stream that throws', () => {
  it.each([
    ['pause', 'as we pause', (recorder: Recorder) => recorder.transport.pause?.()],
    ['resume', 'as we resume', (recorder: Recorder) => recorder.transport.resume?.()],
    ['end', 'as we end', (recorder: Recorder) => recorder.close()],
    ['resume', 'as we end', (recorder: Recorder) => recorder.close()],
    ['end', 'as the peer has ended', (_: Recorder, over: Duplex) => over.push(null)],
  ] as const)('from %s() %s is cut, with what it threw', async (method, _when, act) => {
    const { over, error, arm } = throwing(method)
    const recorder = await opened(over)
    arm()
    act(recorder, over)
    await recorder.untilClosed()
    expect([recorder.ends, recorder.cause, over.destroyed, recorder.violations]).toEqual([
      1,
      error,
      true,
      [],
    ])
  })

  it.each(['pause', 'resume'] as const)('from %s() at once is told at open()', async (method) => {
    const { over, error, arm } = throwing(method)
    arm()
    const recorder = recorded(over).open()
    await recorder.untilClosed()
    expect([recorder.ends, recorder.cause, over.destroyed]).toEqual([1, error, true])
  })

  it('from destroy() has ended all the same: after our end, a cut, an error', async () => {
    const all = [throwing('destroy'), throwing('destroy'), throwing('destroy')] as const
    const recorders = all.map(({ over }) => recorded(over).open())
    await pause(1)
    for (const { arm } of all) arm()
    recorders[0]?.close()
    all[0].over.push(null)
    recorders[1]?.destroy()
    const error = new Error('broken')
    all[2].over.emit('error', error)
    await Promise.all(recorders.map((recorder) => recorder.untilClosed()))
    expect(recorders.map(({ ends, cause }) => [ends, cause])).toEqual([
      [1, undefined],
      [1, undefined],
      [1, error],
    ])
  })
})

describe('what is refused', () => {
  const ended = stream()
  ended.destroy()

  it.each([
    ['nothing', undefined],
    ['text', 'stream'],
    ['an object', {}],
    ['a readable', { on() {}, off() {}, pause() {}, resume() {}, destroy() {} }],
    ['objects', new PassThrough({ objectMode: true })],
    ['text that is decoded', new PassThrough().setEncoding('utf8')],
    ['a stream that is closed', ended],
    ['a stream that cannot be written', new Duplex({ writable: false } as object)],
    ['a stream that cannot be read', new Duplex({ readable: false } as object)],
  ])('%s: ERR_INVALID_OPTION', (_name, given) => {
    expect(() => duplexTransport(given as never)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'stream' }),
    )
  })
})

describe('a function that opens', () => {
  it.each([
    ['a stream', () => stream()],
    ['a promise of one', async () => stream()],
  ])('gives %s, with the signal', async (_name, open) => {
    const given: unknown[] = []
    const dial = duplexTransport((options: unknown) => {
      given.push(options)
      return open()
    })
    openedOver(await dial('x://', { signal: never }))
    expect(given).toEqual([{ signal: never }])
  })

  it('has its error passed on', async () => {
    const error = new Error('no')
    const sync = duplexTransport(() => {
      throw error
    })
    const late = duplexTransport(() => Promise.reject(error))
    expect([
      await failure(sync('x://', { signal: never })),
      await failure(late('x://', { signal: never })),
    ]).toEqual([error, error])
  })

  it('is refused what is no stream', async () => {
    const error = await failure(
      duplexTransport(async () => ({}) as Duplex)('x://', { signal: never }),
    )
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'stream' })
  })

  it('is not asked once it is given up', async () => {
    const reason = new Error('given up')
    const open = vi.fn(() => stream())
    expect(
      await failure(duplexTransport(open)('x://', { signal: AbortSignal.abort(reason) })),
    ).toBe(reason)
    expect(open).not.toHaveBeenCalled()
  })

  it('is given up at once; a stream that comes later is destroyed, and its error is nobody’s', async () => {
    const reason = new Error('given up')
    const abort = new AbortController()
    let give: (over: Duplex) => void = () => undefined
    const dialled = failure(
      duplexTransport(() => new Promise<Duplex>((resolve) => (give = resolve)))('x://', {
        signal: abort.signal,
      }),
    )
    abort.abort(reason)
    expect(await dialled).toBe(reason)
    const over = stream()
    give(over)
    await pause(1)
    expect(over.destroyed).toBe(true)
    over.emit('error', new Error('late'))
  })

  it('may give a socket that still connects: it is waited for, and its failure told', async () => {
    const server = createServer((socket) => socket.destroy())
    const port = await listening(server)
    const open = duplexTransport(() => connect(port, '127.0.0.1'))
    ;(await open('x://', { signal: never })).destroy()
    await new Promise((resolve) => server.close(resolve))
    expect((await failure(open('x://', { signal: never }))).code).toBe('ECONNREFUSED')
  })

  it('may give a socket that never connects: it is destroyed when the attempt is given up', async () => {
    const over = Object.assign(stream(), { connecting: true })
    const abort = new AbortController()
    const dialled = failure(duplexTransport(() => over)('x://', { signal: abort.signal }))
    await pause(1)
    const reason = new Error('given up')
    abort.abort(reason)
    expect(await dialled).toBe(reason)
    expect(over.destroyed).toBe(true)
  })
})

it('a client: connects over a pair in memory, again after a loss, and leaves nothing open', async () => {
  const opened: Duplex[] = []
  const client = new Client(
    {
      url: 'pair://broker',
      transport: duplexTransport(() => {
        const [near, far] = duplexPair()
        opened.push(near)
        far.on('data', (bytes: Buffer) => {
          if (bytes[0] === 0x10) far.write(connack())
          if (bytes.includes(Buffer.of(0xe0, 0x00))) far.end()
        })
        far.on('error', () => undefined)
        return near
      }),
    },
    { reconnect: { backoff: () => 1 } },
  )
  await client.connect()
  const again = new Promise<void>((resolve) => client.on('connect', () => resolve()))
  opened[0]?.destroy(new Error('the line is dead'))
  await within(again, 'the second connection')
  await client.disconnect()
  await pause(10)
  expect([opened.length, opened.every(({ destroyed }) => destroyed)]).toEqual([2, true])
})
