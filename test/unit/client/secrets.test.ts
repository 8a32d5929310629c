import { describe, expect, it } from 'vitest'
import type { ClientOptions, Endpoint } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { Client, connect } from '../../../src/client/node.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { eventTypes, told } from './telling.js'

const canary = /canary/i
type Ending = 'refused' | 'silent' | 'cut' | 'bad' | 'down' | 'taken' | 'good' | 'throws'
const endings: Ending[] = ['refused', 'silent', 'cut', 'bad', 'down', 'taken', 'good', 'throws']

/** One life with secrets in it; everything that comes out of it. */
async function life(ending: Ending, where: 'options' | 'url' | 'function'): Promise<{ output: string; client: BaseClient; sent: string }> {
  const clock = new VirtualClock()
  const lines: unknown[] = []
  const logger = { debug: lines.push.bind(lines), info: lines.push.bind(lines), warn: lines.push.bind(lines), error: lines.push.bind(lines) }
  const sent: number[] = []
  let peer: ScriptedPeer | undefined
  const endpoint: Endpoint = {
    url: where === 'url' ? 'memory://canary-user:canary-pass@host/path' : 'memory://host/path',
    transport: () => {
      if (ending === 'down') throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
      peer = new ScriptedPeer(far, 5, (packet) => {
        if (ending === 'refused') return { type: 'connack', sessionPresent: false, reasonCode: 0x86, properties: { reasonString: 'no' } }
        return ending === 'silent' ? undefined : agreeable(packet)
      })
      return near
    },
  }
  const login = { username: 'canary-user', password: 'canary-pass' }
  const options: ClientOptions = { logger, clientId: 'a', ...(where === 'options' ? login : {}) }
  const credentials = (): typeof login => {
    if (ending === 'throws') throw new Error('no vault')
    return login
  }
  const client = new BaseClient(virtualPlatform(clock), endpoint, where === 'function' ? { ...options, credentials } : options)
  for (const type of eventTypes) client.on(type, (event) => lines.push(event))
  client.on('packet', () => {
    throw new Error('listener')
  })
  lines.push(client)
  const outcome = client.connect().then(
    () => undefined,
    (error: unknown) => lines.push(error),
  )
  await clock.settle()
  lines.push(client)
  const calls = [client.publish('a', 'b', { qos: 1 }), client.subscribe('a'), client.listen('b', () => undefined)].map((call) =>
    call.then(
      (value) => lines.push(value),
      (error: unknown) => lines.push(error),
    ),
  )
  await clock.settle()
  if (ending === 'cut') peer?.cut()
  if (ending === 'bad') peer?.sendBytes('00 00')
  if (ending === 'taken') peer?.send({ type: 'disconnect', reasonCode: 0x8e, properties: {} })
  await clock.advance(ending === 'silent' ? 10_000 : 0)
  client.disconnect({ timeout: 0 })
  await clock.advance(2000)
  await Promise.all([outcome, ...calls])
  lines.push(await client.closed, client, client.negotiated, client.outbound)
  sent.push(...(peer?.bytes ?? []))
  return { output: lines.map(told).join('\n'), client, sent: Buffer.from(sent).toString('latin1') }
}

describe('a secret never comes out', () => {
  it.each(endings.flatMap((ending) => (['options', 'url', 'function'] as const).map((where) => [where, ending] as const)))(
    'given by %s, and it ends: %s',
    async (where, ending) => {
      const { output, client, sent } = await life(ending, where)
      expect(output.length).toBeGreaterThan(500)
      expect(output).not.toMatch(canary)
      expect(told(client)).not.toMatch(canary)
      // The canary sings: it was there.
      if (ending === 'good' || ending === 'refused') expect(sent).toMatch(/canary-user.*canary-pass/s)
    },
  )

  it('CONNECT in packet events names neither', async () => {
    const world = new World({ username: 'canary-user', password: 'canary-pass', will: { topic: 'w', payload: 'last words' } })
    world.answer = agreeable
    const packets: unknown[] = []
    world.client.on('packet', ({ packet }) => packets.push(packet))
    await Promise.all([world.client.connect(), world.settle()])
    expect(packets[0]).toMatchObject({ type: 'connect', username: '[redacted]', clientId: '' })
    expect(told(packets)).not.toMatch(canary)
  })

  it.each([
    'mqtt://canaryuser:canarypass@',
    'mqtt://canaryuser:canarypass@host:99999',
    'http://canaryuser:canarypass@host',
    'mqtt://canaryuser:canary%E0pass@host',
    'mqtt://canaryuser:canarypass@ho st',
    '//canaryuser:canarypass@host',
    'canaryuser:canarypass@host:1883',
  ])('a URL that is refused: %s', (url) => {
    for (const endpoint of [url, { url }, ['mqtt://ok', url]]) {
      let error: unknown
      try {
        new Client(endpoint)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({ code: 'ERR_INVALID_BROKER_URL' })
      expect(told(error)).not.toMatch(canary)
    }
  })

  it('options that are refused do not repeat their values', () => {
    for (const options of [
      { password: 'canary'.repeat(20_000) },
      { username: 'canary\ud800' },
      { username: ['canary'] },
      { password: { canary: 1 } },
      { credentials: 'canary' },
      { clientId: 'a', keepAlive: -1, password: 'canary' },
    ]) {
      let error: unknown
      try {
        new Client('mqtt://h', options as never)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' })
      expect(told(error)).not.toMatch(canary)
    }
  })

  it('a real socket: nobody listens', async () => {
    for (const scheme of ['mqtt', 'ws']) {
      const error = await failure(connect(`${scheme}://canaryuser:canarypass@127.0.0.1:1/path`))
      expect(told(error)).not.toMatch(canary)
    }
  })
})

describe('what a peer says is escaped where it is printed', () => {
  const evil = 'red\u001b[31m\r\nFAKE LINE \u202e\u2028\u0085'
  const dangerous = ['\u001b', '\r', '\n', '\u202e', '\u2028', '\u0085']
  const unsafe = (text: string | undefined): boolean => dangerous.some((character) => text?.includes(character) !== false)

  it('in logs and in messages of errors', async () => {
    const lines: string[] = []
    const push = (line: string): void => {
      lines.push(line)
    }
    const logger = { debug: push, info: push, warn: push, error: push }
    const world = await connected({ logger }, accepting({ assignedClientIdentifier: evil, reasonString: evil }))
    world.client.on('connect', () => undefined)
    world.client.on('serverdisconnect', () => {
      throw new Error(evil)
    })
    const refusing = failure(world.client.subscribe('a'))
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    await world.send({ type: 'suback', packetId, reasonCodes: [0x87], properties: { reasonString: evil } })
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: { reasonString: evil } })
    const errors = [await refusing, await world.client.closed]
    const refused = new World({ logger })
    refused.answer = () => ({ type: 'connack', sessionPresent: false, reasonCode: 0x87, properties: { reasonString: evil } })
    const connecting = failure(refused.client.connect())
    await refused.settle()
    errors.push(await connecting)
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) expect(unsafe(line)).toBe(false)
    for (const error of errors) expect(unsafe(error?.message)).toBe(false)
    // The text itself is there, as it came.
    expect(errors[2]?.reasonString).toBe(evil)
  })

  it('and cut at 256 characters', async () => {
    const lines: string[] = []
    await connected({ logger: { info: (line: string) => lines.push(line) } }, accepting({ assignedClientIdentifier: 'x'.repeat(60_000) }))
    expect(lines[0]?.length).toBeLessThan(600)
  })
})
