/** What the stacks of errors keep: the message whatever it says, and what others made. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { connect } from '../../../src/client/node.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { connected, failure } from './harness.js'

/** Puts this in the place of the engine's way to write stacks, for one test. */
function prepareWith(prepare: NonNullable<typeof Error.prepareStackTrace>): void {
  const { prepareStackTrace } = Error
  onTestFinished(() => {
    Error.prepareStackTrace = prepareStackTrace
  })
  Error.prepareStackTrace = prepare
}

describe('errors', () => {
  it.each(['node:17/#/x', 'a (node:b', 'a\n at node:b', '/mqwire/dist/'])(
    'keep a message that reads like a place: %j',
    (text) => expect(new MqttError('ERR_INVALID_TOPIC', text).stack).toContain(text),
  )

  it('leave what an application threw as it is, but for lines that are not its own', () => {
    const cause = new Error('stopped by node:cluster')
    const [message, own] = (cause.stack as string).split('\n')
    expect(new MqttError('ERR_ABORTED', undefined, { cause }).cause).toBe(cause)
    expect((cause.stack as string).split('\n').slice(0, 2)).toEqual([message, own])
    expect(cause.message).toBe('stopped by node:cluster')
  })

  it('leave lines of this package out, also where source maps give them those of its sources', () => {
    const own = '    at main (file:///app/main.js:1:2)'
    const ours = ['dist/wire/decode.js', 'src/wire/decode.ts'].map(
      (name) => `    at decode (file:///app/node_modules/mqwire/${name}:3:4)`,
    )
    const cause = Object.assign(new Error('odd'), {
      stack: ['Error: odd', ...ours, own].join('\n'),
    })
    expect(new MqttError('ERR_ABORTED', undefined, { cause }).cause).toBe(cause)
    expect(cause.stack).toBe(`Error: odd\n${own}`)
  })

  it.each([[null], [5], [['x']]])('are made also where the stack of their cause is %j', (stack) => {
    const cause = Object.assign(new Error('odd'), { stack })
    expect(new MqttError('ERR_ABORTED', undefined, { cause }).cause).toBe(cause)
    expect(cause.stack).toBe(stack)
  })

  it('are made also of a cause that is a revoked Proxy, or whose stack throws', () => {
    const { proxy, revoke } = Proxy.revocable(new Error('gone'), {})
    revoke()
    expect(new MqttError('ERR_ABORTED', undefined, { cause: proxy }).code).toBe('ERR_ABORTED')
    const thrower = Object.defineProperty(new Error('odd'), 'stack', {
      get() {
        throw new Error('no stack')
      },
    })
    expect(new MqttError('ERR_ABORTED', undefined, { cause: thrower }).code).toBe('ERR_ABORTED')
  })

  it('with an odd stack as the reason of an abort settle the call', async () => {
    const world = await connected()
    const abort = new AbortController()
    const call = failure(world.client.publish('a', 'x', { qos: 1, signal: abort.signal }))
    abort.abort(Object.assign(new Error('odd'), { stack: null }))
    expect(await call).toMatchObject({ code: 'ERR_ABORTED' })
  })

  it('are written when they are read, once: who catches an error and looks at its code pays for no text', () => {
    let written = 0
    prepareWith((error, frames) => {
      written += 1
      return [String(error), ...frames.map((frame) => `    at ${frame.toString()}`)].join('\n')
    })
    const inner = new MqttError('ERR_CLOSED')
    const error = new MqttError('ERR_INVALID_TOPIC', 'topic must not be\n    at all', {
      cause: inner,
    })
    expect([error.code, written]).toEqual(['ERR_INVALID_TOPIC', 0])
    const { stack } = error
    expect(stack?.startsWith('MqttError: topic must not be\n    at all\n    at ')).toBe(true)
    expect(stack).toContain('error-stacks.test')
    expect([error.stack, written]).toEqual([stack, 1])
    expect(inner.stack).toContain('error-stacks.test')
    inner.stack = 'mine'
    expect([inner.stack, Object.keys(inner).includes('stack')]).toEqual(['mine', false])
  })

  it('are taken once where the encoder objects to a publish: its error and the one that stands for it have the same lines', async () => {
    const { client } = await connected()
    const refused = [client.publish('a/#', 'x'), client.publish('a/#', 'x', { qos: 1 })]
    const { stackTraceLimit } = Error
    for (const error of await Promise.all(refused.map(failure))) {
      expect(error).toMatchObject({ code: 'ERR_INVALID_TOPIC', option: 'topic' })
      expect(
        error.stack?.startsWith('MqttError: topic "a/#" must not hold a wildcard\n    at '),
      ).toBe(true)
      expect(error.stack).toContain('wire/writer.ts')
      expect(error.stack).toContain('error-stacks.test')
      expect(error.stack?.split('MqttError').length).toBe(3)
    }
    expect(Error.stackTraceLimit).toBe(stackTraceLimit)
  })

  it.each(['message', 'name', 'toString'])(
    'can be read where an application made %s odd',
    (field) => {
      const error = Object.assign(new MqttError('ERR_CLOSED'), { [field]: Symbol('odd') })
      expect(error.stack).toContain('error-stacks.test')
    },
  )

  it('are what an application makes of them, also where it makes no text', () => {
    prepareWith((_error, frames) => frames)
    expect(Array.isArray(new MqttError('ERR_CLOSED').stack)).toBe(true)
  })

  it.each([
    ['a message that is a symbol', 'ERR_TIMEOUT', Symbol('odd')],
    ['no code', undefined, undefined],
  ])('leave the limit of stacks as it was, with %s', (_name, code, message) => {
    const { stackTraceLimit } = Error
    try {
      new MqttError(code as never, message as never)
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError)
    }
    expect(Error.stackTraceLimit).toBe(stackTraceLimit)
  })

  it('have a name that a subclass may set', () => {
    class RemoteError extends MqttError {
      constructor() {
        super('ERR_TIMEOUT')
        this.name = 'RemoteError'
      }
    }
    expect(String(new RemoteError())).toContain('RemoteError')
    expect(new MqttError('ERR_TIMEOUT').name).toBe('MqttError')
  })

  it.each(['https://h/?token=SECRET', 'wsss://h/mqtt?token=SECRET', 'wss//h/mqtt?token=SECRET'])(
    'leave the query of a URL out: %s',
    (url) => {
      const make = (): unknown => new BaseClient(virtualPlatform(new VirtualClock()), url, {})
      expect(make).toThrow(MqttError)
      expect(make).not.toThrow('SECRET')
    },
  )
})

it.each([
  ['an AggregateError of nothing', () => Promise.any<never>([])],
  [
    'an error whose message is a symbol',
    () => Promise.reject(Object.assign(new Error('x'), { message: Symbol('odd') })),
  ],
])('a dial that fails in an odd way settles connect(), with %s', async (_name, transport) => {
  expect(
    await failure(
      connect({ url: 'mqtt://t', transport }, { connectTimeout: 500, reconnect: false }),
    ),
  ).toMatchObject({
    code: 'ERR_CONNECT_FAILED',
  })
})
