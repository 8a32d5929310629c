/** The in-memory broker seen by `mosquitto_pub` and `mosquitto_sub`, on 5.0 and 3.1.1; over TCP, which is what they speak. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { BrokerSession, MemoryBrokerOptions } from '../../src/testing/index.js'
import { within } from '../real/waiting.js'
import { listen, next, type OutsideBroker } from './outside.js'

const folders = (process.env['PATH'] ?? '').split(delimiter)
const missing = ['mosquitto_pub', 'mosquitto_sub'].filter(
  (program) => !folders.some((folder) => existsSync(join(folder, program))),
)

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

if (missing.length > 0) {
  console.warn(`The tests with mosquitto's clients are left out: ${missing.join(', ')} not found`)
  it(`mosquitto's clients: ${missing.join(', ')} not found`, () =>
    expect(process.env['CI']).toBeUndefined())
} else {
  describe.each(['mqttv5', 'mqttv311'])('mosquitto_pub and mosquitto_sub, %s', define)
}

function define(version: string): void {
  let server: OutsideBroker | undefined
  const running: ChildProcess[] = []

  afterEach(async () => {
    for (const child of running.splice(0)) child.kill('SIGKILL')
    await server?.stop()
  })

  async function start(options?: MemoryBrokerOptions): Promise<OutsideBroker> {
    server = await listen(options)
    return server
  }

  function run(program: 'mosquitto_pub' | 'mosquitto_sub', ...rest: string[]): Running {
    const child = spawn(
      program,
      ['-h', '127.0.0.1', '-p', String(server?.port), '-V', version, ...rest],
      { stdio: 'pipe' },
    )
    running.push(child)
    const texts = { out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      texts.out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      texts.err += text
    })
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (code) => resolve({ code, ...texts }))
    })
    return { child, ended: within(ended, `${program} ${rest.join(' ')}`) }
  }

  const publish = (...rest: string[]): Promise<Ended> => run('mosquitto_pub', ...rest).ended

  /** A subscriber that ends after so many messages; given when its subscription was granted. */
  async function subscribe(count: number, ...rest: string[]): Promise<Running> {
    const granted = server && next(server.broker, 'subscribe')
    const started = run('mosquitto_sub', '-C', String(count), '-F', '%t %q %r %p', ...rest)
    await within(Promise.race([granted, started.ended]), 'SUBACK')
    return started
  }

  it.each(['0', '1', '2'])('QoS %s, in order', async (qos) => {
    const { broker } = await start()
    const subscriber = await subscribe(20, '-t', 'events/#', '-q', qos)
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`)
    const sender = run('mosquitto_pub', '-t', 'events/a', '-q', qos, '-l')
    sender.child.stdin?.end(`${lines.join('\n')}\n`)
    expect(await sender.ended).toMatchObject({ code: 0, err: '' })
    expect((await subscriber.ended).out).toBe(
      lines.map((line) => `events/a ${qos} 0 ${line}\n`).join(''),
    )
    expect(broker.accepted).toHaveLength(20)
    expect(broker.violations).toEqual([])
  })

  it('retained messages, and their end', async () => {
    const { broker } = await start()
    await publish('-t', 'r/1', '-m', 'kept', '-r', '-q', '1')
    const subscriber = await subscribe(1, '-t', 'r/#', '-q', '1')
    expect((await subscriber.ended).out).toBe('r/1 1 1 kept\n')
    await publish('-t', 'r/1', '-n', '-r', '-q', '1')
    expect(broker.retained.size).toBe(0)
  })

  it('a will', async () => {
    await start()
    const subscriber = await subscribe(1, '-t', 'will')
    const lost = await subscribe(
      1,
      '-t',
      'never',
      '--will-topic',
      'will',
      '--will-payload',
      'gone',
      '--will-qos',
      '1',
    )
    lost.child.kill('SIGKILL')
    expect((await subscriber.ended).out).toBe('will 0 0 gone\n')
  })

  it('a session that is resumed', async () => {
    const { broker } = await start()
    const settings = ['-i', 'kept', '-c', '-t', 'jobs/#', '-q', '2']
    const first = await subscribe(1, ...settings)
    const left = next(broker, 'disconnect', ({ client }) => client.clientId === 'kept')
    broker.publish({ topic: 'jobs/1', payload: 'one', qos: 2 })
    expect((await first.ended).out).toBe('jobs/1 2 0 one\n')
    await within(left, 'the goodbye')
    for (const payload of ['two', 'three']) await publish('-t', 'jobs/2', '-q', '2', '-m', payload)
    expect(broker.sessions.get('kept')).toMatchObject({
      connected: false,
      queued: 2,
    } satisfies Partial<BrokerSession>)
    const second = run('mosquitto_sub', '-C', '2', '-F', '%t %q %r %p', ...settings)
    expect((await second.ended).out).toBe('jobs/2 2 0 two\njobs/2 2 0 three\n')
    expect(broker.violations).toEqual([])
  })

  it('shared subscriptions', async () => {
    const { broker } = await start()
    const members = [
      await subscribe(3, '-t', '$share/g/work', '-q', '1'),
      await subscribe(3, '-t', '$share/g/work', '-q', '1'),
    ]
    for (let i = 0; i < 6; i++) broker.publish({ topic: 'work', payload: String(i), qos: 1 })
    const got = await Promise.all(
      members.map(async (member) => (await member.ended).out.replaceAll('\n', ' ')),
    )
    expect(got).toEqual(['work 1 0 0 work 1 0 2 work 1 0 4 ', 'work 1 0 1 work 1 0 3 work 1 0 5 '])
  })

  it('a takeover', async () => {
    const { broker } = await start()
    const older = run('mosquitto_sub', '-i', 'same', '-t', 'a', '-W', '10')
    await within(next(broker, 'subscribe'), 'SUBACK')
    const gone = next(broker, 'disconnect')
    const granted = next(broker, 'subscribe')
    run('mosquitto_sub', '-i', 'same', '-t', 'b')
    expect(await within(gone, 'the end')).toMatchObject({ by: 'broker', reasonCode: 0x8e })
    await within(granted, 'SUBACK')
    expect(broker.sessions.get('same')?.subscriptions.map(({ filter }) => filter)).toEqual(['b'])
    older.child.kill('SIGKILL')
  })

  it('user name and password', async () => {
    await start({
      authenticate: ({ username, password }) =>
        username === 'u' && new TextDecoder().decode(password) === 'p',
    })
    expect(await publish('-t', 't', '-m', 'x', '-u', 'u', '-P', 'p')).toMatchObject({ code: 0 })
    const refused = await publish('-t', 't', '-m', 'x', '-u', 'u', '-P', 'no')
    expect(refused.code).not.toBe(0)
    expect(refused.err).toMatch(/authori[sz]ed/i)
  })

  it('refused subscriptions and publishes', async () => {
    const { broker } = await start({
      authorizeSubscribe: () => false,
      authorizePublish: () => false,
    })
    const subscriber = await subscribe(1, '-t', 'secret')
    expect((await subscriber.ended).err).toMatch(/denied|rejected/i)
    const publisher = await publish('-t', 'secret', '-q', '1', '-m', 'x', '-d')
    if (version === 'mqttv5')
      expect(publisher.out + publisher.err).toMatch(/135|not authori[sz]ed/i)
    expect(broker.accepted).toEqual([])
  })

  if (version !== 'mqttv5') return

  it('user properties and the other properties of a message', async () => {
    await start()
    const subscriber = run(
      'mosquitto_sub',
      '-C',
      '1',
      '-t',
      't',
      '-F',
      '%P|%C|%R|%D|%E|%S',
      '-D',
      'subscribe',
      'subscription-identifier',
      '17',
    )
    await within(next((server as OutsideBroker).broker, 'subscribe'), 'SUBACK')
    const properties: string[][] = [
      ['user-property', 'b', '1'],
      ['user-property', 'a', '2'],
      ['content-type', 'text/plain'],
      ['response-topic', 'back'],
      ['correlation-data', 'xyz'],
      ['message-expiry-interval', '600'],
    ]
    await publish(
      '-t',
      't',
      '-m',
      'x',
      ...properties.flatMap((property) => ['-D', 'publish', ...property]),
    )
    expect((await subscriber.ended).out).toBe('b:1 a:2|text/plain|back|xyz|600|17\n')
  })

  it('session expiry', async () => {
    const { broker } = await start()
    await (await subscribe(1, '-i', 'brief', '-c', '-x', '1', '-q', '1', '-t', 'x', '-W', '1'))
      .ended
    expect(broker.sessions.get('brief')).toMatchObject({ connected: false, expiryInterval: 1 })
    await expect.poll(() => broker.sessions.has('brief'), { timeout: 5000 }).toBe(false)
  })

  it('limits, which it keeps itself', async () => {
    const { broker } = await start({
      maximumQoS: 1,
      maximumPacketSize: 500,
      retainAvailable: false,
    })
    expect((await publish('-t', 't', '-q', '2', '-m', 'x')).err).toMatch(/QoS not supported/)
    await publish('-t', 't', '-q', '1', '-m', 'x'.repeat(600))
    // It leaves the flag out.
    await publish('-t', 't', '-q', '1', '-m', 'x', '-r')
    expect(broker.accepted).toMatchObject([{ qos: 1, retain: false }])
    expect(broker.violations).toEqual([])
  })
}
