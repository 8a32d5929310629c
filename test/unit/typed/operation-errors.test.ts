/** Errors that an operation declares: raised by handlers, narrowed by callers, checked at both ends, and borne by peers that know nothing of them. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MqttError } from '../../../src/errors.js'
import * as mq from '../../../src/typed/index.js'
import { pause } from '../../support/pausing.js'
import { coded, outcomeOf, pair } from './rig.js'

const missing = z.object({
  id: z.string(),
  at: z.iso.datetime().transform((text) => new Date(text)),
})
const find = mq.operation('find/{id}', mq.number(), mq.text(), {
  errors: { NOT_FOUND: mq.json(missing), BUSY: undefined, SEALED: mq.bytes() },
})
const at = '2026-01-02T03:04:05.000Z'
/** The same topic, for those that know no errors. */
const plain = mq.operation('find/{id}', mq.number(), mq.text())

const remote = (reasonName: string, fields = {}) => coded('ERR_REMOTE', { reasonName, ...fields })

describe('a declared error', () => {
  it('comes with its data, as its codec makes it, and is narrowed by its code', async () => {
    const { caller, server } = await pair()
    await using _serving = await find.on(server).serve(({ params: { id } }) => {
      throw id === 'busy'
        ? find.error('BUSY', 'come again')
        : id === 'sealed'
          ? find.error('SEALED', Uint8Array.of(0, 255))
          : find.error('NOT_FOUND', { id, at }, 'no such thing')
    })
    const bound = find.on(caller)
    const error = await outcomeOf(bound.call({ id: 'a' }, 1))
    const fields = {
      name: 'MqttError',
      message: 'no such thing',
      fault: 'remote',
      outcome: 'unknown',
    }
    expect(error).toEqual(remote('NOT_FOUND', { ...fields, data: { id: 'a', at: new Date(at) } }))
    if (!find.isError(error)) return expect.unreachable('it was declared')
    if (error.reasonName === 'NOT_FOUND') expect(error.data.at.getFullYear()).toBe(2026)
    const known = [
      find.isError(error, 'NOT_FOUND'),
      find.isError(error, 'BUSY'),
      plain.isError(error),
    ]
    expect(known).toEqual([true, false, false])
    const busy = await outcomeOf(bound.call({ id: 'busy' }, 1))
    expect(busy).toMatchObject({ reasonName: 'BUSY', message: 'come again', data: undefined })
    expect(find.isError(busy, 'BUSY')).toBe(true)
    expect(await outcomeOf(bound.call({ id: 'sealed' }, 1))).toMatchObject({
      reasonName: 'SEALED',
      data: Uint8Array.of(0, 255),
    })
    expect(() => JSON.stringify(error)).not.toThrow()
  })

  it('ends a stream behind the answers before it', async () => {
    const { caller, server } = await pair()
    await using _serving = await find.on(server).serve(async function* ({ params: { id } }) {
      yield 'one'
      throw id === 'busy' ? find.error('BUSY') : find.error('NOT_FOUND', { id, at })
    })
    const seen: unknown[] = []
    for (const id of ['a', 'busy'])
      try {
        for await (const answer of find.on(caller).stream({ id }, 1)) seen.push(answer)
      } catch (error) {
        seen.push(find.isError(error) && [error.reasonName, error.data])
      }
    expect(seen).toEqual([
      'one',
      ['NOT_FOUND', { id: 'a', at: new Date(at) }],
      'one',
      ['BUSY', undefined],
    ])
  })

  it('is an answer: at QoS 1 its handler is called once', async () => {
    const { caller, server } = await pair()
    let calls = 0
    await using serving = await find.on(server).serve(
      () => {
        calls += 1
        throw find.error('BUSY')
      },
      { qos: 1, onError: () => expect.unreachable('nothing failed') },
    )
    expect(
      find.isError(await outcomeOf(find.on(caller).call({ id: 'a' }, 1, { qos: 1 })), 'BUSY'),
    ).toBe(true)
    expect([calls, serving.invalid]).toEqual([1, 0])
  })

  it('of a peer that does not declare it, or declares it in another way, is what it was: ERR_REMOTE with the code', async () => {
    const { caller, server } = await pair()
    await using _serving = await find.on(server).serve(({ params: { id } }) => {
      throw id === 'busy'
        ? find.error('BUSY', 'come again')
        : find.error('NOT_FOUND', { id, at }, 'no such thing')
    })
    const old = await outcomeOf(plain.on(caller).call({ id: 'a' }, 1))
    expect(old).toEqual(remote('NOT_FOUND', { message: 'no such thing' }))
    expect(old).not.toHaveProperty('data')
    expect(await outcomeOf(plain.on(caller).call({ id: 'busy' }, 1))).toMatchObject({
      reasonName: 'BUSY',
      message: 'come again',
    })
    const other = mq.operation('find/{id}', mq.number(), mq.text(), {
      errors: { NOT_FOUND: mq.number() },
    })
    const error = await outcomeOf(other.on(caller).call({ id: 'a' }, 1))
    const unread = { cause: coded('ERR_INVALID_PAYLOAD') }
    expect(error).toEqual(remote('NOT_FOUND', { message: 'no such thing', ...unread }))
    expect(other.isError(error)).toBe(false)
    // A caller that knows requests and nothing more.
    const raw = await outcomeOf(caller.request('find/a', '1'))
    expect(raw).toEqual(remote('NOT_FOUND', { message: `{"id":"a","at":"${at}"}` }))
  })

  it('of a responder that gives a code and a text has no data, and is declared where it needs none', async () => {
    const { caller, server } = await pair()
    await using _serving = await server.respond('find/+', ({ topic }) => {
      throw new MqttError('ERR_REMOTE', 'in words', { reasonName: topic.slice(5) })
    })
    for (const [id, isDeclared, more] of [
      ['BUSY', true, {}],
      ['NOT_FOUND', false, { cause: coded('ERR_INVALID_PAYLOAD') }],
      ['OTHER', false, {}],
    ] as const) {
      const error = await outcomeOf(find.on(caller).call({ id }, 1))
      expect(error).toEqual(remote(id, { message: 'in words', ...more }))
      expect([find.isError(error), find.isError(error, 'BUSY')]).toEqual([isDeclared, isDeclared])
    }
  })

  it('whose data does not fit is a fault of the handler; so is that of another operation, which says its code', async () => {
    const { caller, server } = await pair()
    const elsewhere = mq.operation('other', mq.text(), mq.text(), { errors: { GONE: mq.number() } })
    await using _serving = await find.on(server).serve(({ params: { id } }) => {
      throw id === 'a'
        ? find.error('NOT_FOUND', { id, at: 'noon' })
        : elsewhere.error('GONE', 4, 'gone for good')
    })
    const bound = find.on(caller)
    expect(await outcomeOf(bound.call({ id: 'a' }, 1))).toEqual(remote('ERR_HANDLER_FAILED'))
    expect(await outcomeOf(bound.call({ id: 'b' }, 1))).toEqual(
      remote('GONE', { message: 'gone for good' }),
    )
  })

  it('of a generator is the answer to a call; one whose data does not fit ends a stream as a fault of the generator', async () => {
    const { caller, server } = await pair()
    await using _serving = await find.on(server).serve(async function* ({ params: { id } }) {
      yield* []
      throw id === 'busy' ? find.error('BUSY') : find.error('NOT_FOUND', { id, at: 'noon' })
    })
    expect(find.isError(await outcomeOf(find.on(caller).call({ id: 'busy' }, 1)))).toBe(true)
    expect(await outcomeOf(find.on(caller).stream({ id: 'a' }, 1).next())).toEqual(
      remote('ERR_HANDLER_FAILED'),
    )
  })

  it('of another server is not said again', async () => {
    const { caller, server } = await pair()
    await using _relaying = await plain
      .on(server)
      .serve({ id: 'd' }, async () => find.on(server).call({ id: 'e' }, 1))
    await using _serving = await find.on(server).serve({ id: 'e' }, () => {
      throw find.error('BUSY')
    })
    expect(await outcomeOf(find.on(caller).call({ id: 'd' }, 1))).toEqual(
      remote('ERR_HANDLER_FAILED'),
    )
  })

  it.each(['call', 'stream'] as const)(
    'that is too large for the broker, of a %s, is reported as an answer is',
    async (how) => {
      const { caller, server } = await pair({}, { maximumPacketSize: 500 } as never)
      await using _serving = await find.on(server).serve(() => {
        const error = find.error('SEALED', new Uint8Array(1000))
        if (how === 'call') throw error
        return (async function* (): AsyncGenerator<string> {
          yield 'one'
          throw error
        })()
      })
      const bound = find.on(caller)
      const stream = bound.stream({ id: 'a' }, 1)
      if (how === 'stream') expect((await stream.next()).value).toBe('one')
      const error = await outcomeOf(how === 'call' ? bound.call({ id: 'a' }, 1) : stream.next())
      expect(error).toEqual(remote('ERR_PACKET_TOO_LARGE', { message: 'the answer is too large' }))
    },
  )

  it.each(['answer', 'error'])(
    'whose codec takes its time, or an %s, does not hold up an abort',
    async (what) => {
      const { caller, server } = await pair()
      const endless = mq.codec<string>({
        encode: (value) => value,
        decode: () => new Promise(() => undefined),
      })
      const slow = mq.operation('slow', undefined, endless, { errors: { SLOW: endless } })
      await using _serving = await slow.on(server).serve(async function* () {
        if (what === 'error') throw slow.error('SLOW', 'data')
        yield 'one'
      })
      for (const how of ['call', 'stream'] as const) {
        const abort = new AbortController()
        const bound = slow.on(caller)
        const call = outcomeOf(
          how === 'call'
            ? bound.call({ signal: abort.signal })
            : bound.stream({ signal: abort.signal }).next(),
        )
        await pause(100)
        abort.abort()
        expect(await call).toEqual(coded('ERR_ABORTED', { outcome: 'unknown' }))
      }
    },
  )

  it('is raised and looked at without a client', () => {
    const error = find.error('NOT_FOUND', { id: 'a', at })
    expect(error).toMatchObject({
      code: 'ERR_REMOTE',
      reasonName: 'NOT_FOUND',
      fault: 'local',
      data: { id: 'a', at },
    })
    expect([find.isError(error), find.isError(new Error('x')), find.isError(undefined)]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('has a code that arrives as it is, and is none of ours; what cannot be is refused by name', () => {
    const refused = (option: string) => coded('ERR_INVALID_OPTION', { option })
    const declaring = (errors: unknown) => () =>
      mq.operation('a', undefined, undefined, { errors: errors as never })
    for (const code of ['', 'a\nb', 'ERR_TIMEOUT', 'x'.repeat(300)])
      expect(declaring({ [code]: undefined })).toThrow(refused('errors'))
    expect(declaring({ A: z.number() })).toThrow(refused('codec'))
    expect(declaring([])).toThrow(refused('errors'))
    expect(() => (find.error as (code: string) => Error)('toString')).toThrow(refused('code'))
  })

  it('may be written as a number', () => {
    const numbered = mq.operation('a', undefined, undefined, {
      errors: { 404: mq.number(), 503: undefined },
    })
    const error: unknown = numbered.error('404', 7)
    const data: number | undefined = numbered.isError(error, '404') ? error.data : undefined
    expect([data, numbered.isError(error, '503'), numbered.error('503', 'busy').message]).toEqual([
      7,
      false,
      'busy',
    ])
  })
})
