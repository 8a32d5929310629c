/** Options, URLs and what a server says: secrets are not repeated, and nothing that could command a terminal is printed. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Endpoint } from '../../../src/client/api/index.js'
import { Client } from '../../../src/client/node.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { told } from './telling.js'

const canary = /canary/i

/** What making a client throws: it has this code, and no secret. */
function expectRefusal(
  code: string,
  endpoint: Endpoint | readonly Endpoint[],
  options?: ClientOptions,
): void {
  let error: unknown
  try {
    new Client(endpoint, options)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toMatchObject({ code })
  expect(told(error)).not.toMatch(canary)
}

describe('a secret never comes out', () => {
  it('CONNECT in packet events names neither', async () => {
    const world = new World({
      username: 'canary-user',
      password: 'canary-pass',
      will: { topic: 'w', payload: 'last words' },
    })
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
    for (const endpoint of [url, { url }, ['mqtt://ok', url]])
      expectRefusal('ERR_INVALID_BROKER_URL', endpoint)
  })

  it('options that are refused do not repeat their values', () => {
    for (const options of [
      { password: 'canary'.repeat(20_000) },
      { username: 'canary\ud800' },
      { username: ['canary'] },
      { password: { canary: 1 } },
      { credentials: 'canary' },
      { clientId: 'a', keepAlive: -1, password: 'canary' },
    ])
      expectRefusal('ERR_INVALID_OPTION', 'mqtt://h', options as never)
  })
})

describe('what a peer says is escaped where it is printed', () => {
  const evil = 'red\u001b[31m\r\nFAKE LINE \u202e\u2028\u0085'
  const dangerous = ['\u001b', '\r', '\n', '\u202e', '\u2028', '\u0085']
  const unsafe = (text: string | undefined): boolean =>
    dangerous.some((character) => text?.includes(character) !== false)

  it('in logs and in messages of errors', async () => {
    const lines: string[] = []
    const push = (line: string): void => void lines.push(line)
    const logger = { debug: push, info: push, warn: push, error: push }
    const properties = { reasonString: evil }
    const world = await connected(
      { logger },
      accepting({ assignedClientIdentifier: evil, ...properties }),
    )
    world.client.on('serverdisconnect', () => {
      throw new Error(evil)
    })
    const refusing = failure(world.client.subscribe('a'))
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    await world.send({ type: 'suback', packetId, reasonCodes: [0x87], properties })
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties })
    const refused = new World({ logger })
    refused.answer = () => ({
      type: 'connack',
      sessionPresent: false,
      reasonCode: 0x87,
      properties,
    })
    const connecting = failure(refused.client.connect())
    await refused.settle()
    const errors = [await refusing, await world.client.closed, await connecting]
    expect(lines.length).toBeGreaterThan(3)
    expect([...lines, ...errors.map((error) => error?.message)].filter(unsafe)).toEqual([])
    // The text itself is there, as it came.
    expect(errors[2]?.reasonString).toBe(evil)
  })

  it('and cut at 256 characters', async () => {
    const lines: string[] = []
    const logger = { info: (line: string) => lines.push(line) }
    await connected({ logger }, accepting({ assignedClientIdentifier: 'x'.repeat(60_000) }))
    expect(lines[0]?.length).toBeLessThan(600)
  })
})
