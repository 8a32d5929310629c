/** Hooks: what sees, changes and follows messages. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { Hooks, PublishOptions, Subscription } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import { times } from './harness.js'

let world: VirtualWorld
let client: BaseClient
beforeEach(async () => {
  world = new VirtualWorld()
  client = await world.connect('mqtt://b', { clientId: 'c' })
})
afterEach(() => world.close())

const nextText = async (subscription: Subscription) => (await subscription.next())?.text()
/** Publishes these texts to `t` at QoS 1, one after the other. */
async function publish(...texts: string[]): Promise<void> {
  for (const text of texts) await client.publish('t', text, { qos: 1 })
}

describe('publish', () => {
  it('is called around each publish, the first that came outermost, and may change it', async () => {
    const story: string[] = []
    const named = (name: string): Hooks => ({
      publish: async (call, next) => {
        story.push(`${name} ${call.topic} ${String(call.payload)}`)
        const receipt = await next({ ...call, payload: `${String(call.payload)}${name}` })
        story.push(`${name} ${receipt.reasonName}`)
        return receipt
      },
    })
    client.use(named('a'))
    const stop = client.use(named('b'))
    client.use({})
    const subscription = await client.subscribe('t')
    await publish('x')
    expect(await nextText(subscription)).toBe('xab')
    expect(story).toEqual(['a t x', 'b t xa', 'b Success', 'a Success'])
    stop()
    await publish('y')
    expect(await nextText(subscription)).toBe('ya')
  })

  it('one that forgets to return what next() gives has published once', async () => {
    client.use({ publish: ((_: unknown, next: () => unknown) => void next()) as never })
    const subscription = await client.subscribe('t', { qos: 1 })
    await publish('x', 'y')
    await world.pass(1)
    const texts = [1, 2, 3].map(() => subscription.read()?.text())
    expect(texts).toEqual(['x', 'y', undefined])
  })

  it('keeps the order of the calls, where it goes on in the call', async () => {
    client.use({ publish: (_, next) => next() })
    const subscription = await client.subscribe('t', { qos: 1 })
    await Promise.all(times(50, (index) => client.publish('t', String(index), { qos: 1 })))
    for (let index = 0; index < 50; index++)
      expect(await nextText(subscription)).toBe(String(index))
  })

  it.each<[string, () => never | Promise<never>]>([
    ['throws', () => expect.fail('no')],
    ['rejects with', async () => Promise.reject(new Error('no'))],
  ])('what it %s is what the call rejects with', async (_how, hook) => {
    const stop = client.use({ publish: hook })
    void client.publish('t', 'x')
    await expect(client.publish('t', 'x')).rejects.toThrow('no')
    stop()
    expect((await client.publish('t', 'x')).reasonCode).toBe(0)
  })

  it.each(['drain', 'disconnect'] as const)(
    '%s() waits for what a hook has in hand',
    async (how) => {
      client.use({ publish: async (call, next) => world.sleep(20).then(() => next(call)) })
      const sent = Promise.all(['1', '2', '3'].map((text) => client.publish('t', text, { qos: 1 })))
      const ended = client[how]()
      expect((await world.until(sent)).map(({ reasonCode }) => reasonCode)).toEqual([
        0x10, 0x10, 0x10,
      ])
      await ended
      expect(world.broker.accepted).toHaveLength(3)
    },
  )

  it.each<[string, () => PublishOptions]>([
    ['none', () => ({ qos: 1 })],
    ['one of its own', () => ({ qos: 1, signal: new AbortController().signal })],
  ])('replaces the options, with a signal: %s; the caller’s counts', async (_name, options) => {
    client.use({ publish: (call, next) => next({ ...call, options: options() }) })
    const abort = new AbortController()
    const sent = client.publish('t', 'x', { qos: 1, signal: abort.signal })
    abort.abort()
    await expect(world.until(sent)).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  })

  describe.each(['before', 'after'] as const)('hangs %s next()', (when) => {
    let go: (() => void) | undefined
    beforeEach(() => {
      const hang = () =>
        new Promise<void>((resolve) => {
          go = resolve
        })
      client.use({
        publish: async (call, next) => {
          if (when === 'before') await hang()
          const receipt = await next(call)
          await hang()
          return receipt
        },
      })
    })

    it('an abort settles the call, and nothing is published after it', async () => {
      const abort = new AbortController()
      const sent = client.publish('t', 'x', { qos: 1, signal: abort.signal })
      await world.pass(1)
      abort.abort(new Error('enough'))
      const outcome = when === 'before' ? 'not-sent' : 'unknown'
      await expect(sent).rejects.toMatchObject({
        name: 'AbortError',
        code: 'ERR_ABORTED',
        cause: { message: 'enough' },
        outcome,
      })
      go?.()
      await world.pass(1)
      expect(world.broker.accepted).toHaveLength(when === 'before' ? 0 : 1)
      const since = world.now()
      await world.until(client.drain())
      expect(world.now() - since).toBeLessThan(5)
    })

    it('the end of the client settles the call', async () => {
      const sent = client.publish('t', 'x', { qos: 1 }).then(
        ({ reasonCode }) => reasonCode,
        (error: MqttError) => `${error.code} ${error.outcome}`,
      )
      await world.pass(1)
      await world.until(client.disconnect({ timeout: 50 }))
      expect(await sent).toBe(when === 'before' ? 'ERR_CLOSED not-sent' : 0x10)
    })
  })

  it('sees requests and their answers', async () => {
    const topics: string[] = []
    client.use({
      publish: (call, next) => {
        topics.push(call.topic)
        return next()
      },
    })
    await client.respond('svc', (message) => message.payload)
    expect((await client.request('svc', 'q')).text()).toBe('q')
    expect(topics).toEqual(['svc', expect.stringContaining('mqwire/')])
  })

  it('gets refusals, and a call that it changes is checked', async () => {
    const seen: unknown[] = []
    client.use({
      publish: (call, next) =>
        next(call).catch((error) => void seen.push((error as MqttError).code) as never),
    })
    client.use({ publish: (call, next) => next({ ...call, topic: '#' }) })
    await client.publish('t', 'x')
    expect(seen).toEqual(['ERR_INVALID_TOPIC'])
  })
})

describe('deliver', () => {
  it.each(['auto', 'manual', 'on-receive'] as const)(
    "under ack: '%s' is called at hand-out",
    async (ack) => {
      const story: string[] = []
      client.use({
        deliver: (message, settled) => {
          const name = message.text()
          story.push(`in ${name}`)
          void settled.then(({ reasonCode }) => story.push(`out ${name} ${reasonCode}`))
        },
      })
      const subscription = await client.subscribe('t', { qos: 1, ack })
      await publish('1', '2')
      await world.pass(1)
      expect(story).toEqual([])
      const one = await subscription.next()
      await world.pass(1)
      expect(story).toEqual(['in 1'])
      if (ack === 'manual') one?.ack(0x83)
      await subscription.next()
      await world.pass(1)
      const end = ack === 'manual' ? 'out 1 131' : 'out 1 0'
      expect(story.slice(0, 3).sort()).toEqual(['in 1', 'in 2', end])
    },
  )

  it('hears of the end of QoS 0, and of borrowed messages whose object comes again', async () => {
    const ends: string[] = []
    client.use({ deliver: ({ topic }, settled) => void settled.then(() => ends.push(topic)) })
    const done: string[] = []
    await client.listen('b', (message) => void done.push(message.text()), { lifetime: 'borrowed' })
    for (let index = 0; index < 5; index++)
      await client.publish('b', String(index), { qos: (index % 2) as 0 | 1 })
    await world.pass(1)
    expect([done, ends.length]).toEqual([['0', '1', '2', '3', '4'], 5])
  })

  it('what it returns runs the handler, each time; the first that came outermost', async () => {
    const story: string[] = []
    const around =
      (name: string): Hooks['deliver'] =>
      () =>
      (handler) => {
        story.push(`<${name}`)
        try {
          return handler()
        } finally {
          story.push(`${name}>`)
        }
      }
    for (const name of ['a', 'b']) client.use({ deliver: around(name) })
    let tries = 0
    const handler = (): void => {
      story.push('handler')
      if (tries++ === 0) throw new Error('again')
    }
    await client.listen('t', handler, { qos: 1 })
    await publish('x')
    await world.until(() => tries === 2)
    const once = ['<a', '<b', 'handler', 'b>', 'a>']
    expect(story).toEqual([...once, ...once])
  })

  it('hears nothing of a message that is left to the session', async () => {
    let heard = false
    client.use({ deliver: (_, settled) => void settled.then(() => (heard = true)) })
    const handling = await client.listen('t', () => Promise.reject(new Error('no')), {
      qos: 1,
      onError: 'stop',
    })
    await publish('x')
    await expect(handling.done).rejects.toThrow('handler failed')
    await world.pass(1)
    expect(heard).toBe(false)
  })

  it('leaves nothing on the message that a program sees', async () => {
    client.use({ deliver: () => undefined })
    const subscription = await client.subscribe('t')
    const plain = await (await world.connect('mqtt://b')).subscribe('t')
    await publish('x')
    await world.pass(1)
    expect(Object.keys({ ...subscription.read() })).toEqual(Object.keys({ ...plain.read() }))
  })

  it('one that throws is a line of the log, and does no harm', async () => {
    const lines: string[] = []
    const other = await world.connect('mqtt://b', { logger: { error: (line) => lines.push(line) } })
    other.use({ deliver: () => expect.fail('bad hook') })
    const seen: string[] = []
    await other.listen('t', (message) => void seen.push(message.text()))
    await publish('x')
    await world.pass(1)
    expect([seen, lines]).toEqual([['x'], [expect.stringContaining('bad hook')]])
  })

  it('hooks that come while messages wait see what is handed out from then on', async () => {
    const subscription = await client.subscribe('t', { qos: 1 })
    await publish('1', '2')
    await subscription.next()
    const seen: string[] = []
    client.use({ deliver: (message) => void seen.push(message.text()) })
    await subscription.next()
    expect(seen).toEqual(['2'])
  })
})

it.each([
  [{ publish: 1 }, 'publish'],
  [{ deliver: 'x' }, 'deliver'],
  [{ post: () => undefined }, 'post'],
  [7, ''],
])('refuses %j', (hooks, option) => {
  const refused = expect.objectContaining({
    code: 'ERR_INVALID_OPTION',
    message: expect.stringContaining(option) as string,
  })
  expect(() => client.use(hooks as never)).toThrow(refused)
})
