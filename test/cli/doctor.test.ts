/** The doctor as it is packed: an honest broker, ten and more that do not keep what they announce, and every layer below MQTT. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/node.js'
import type { ClientPacket, Packet, PublishPacket, ServerPacket } from '../../src/wire/packets.js'
import { identities, issue, selfSigned } from '../support/certificates.js'
import { closed, freePort, listening } from '../support/servers.js'
import { type Ended, mqwire } from './program.js'

const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-doctor-'))
afterAll(() => rm(folder, { recursive: true }))

const open: { close(): unknown }[] = []
afterAll(() => Promise.all(open.map((each) => each.close())))

interface Finding {
  readonly check: string
  readonly verdict: string
  readonly seen: string
  readonly meaning?: string
}

async function examined(
  url: string,
  ...more: string[]
): Promise<Ended & { findings: readonly Finding[] }> {
  const ended = await mqwire(['doctor', url, '--json', ...more])
  return { ...ended, findings: ended.out === '' ? [] : JSON.parse(ended.out).findings }
}

/** The findings that are neither good nor an offer that is missing. */
const bad = (findings: readonly Finding[]): string[] =>
  findings
    .filter(({ verdict }) => verdict === 'differs' || verdict === 'failed')
    .map(({ check }) => check)

async function served(
  options: MemoryBrokerOptions,
): Promise<{ broker: MemoryBroker; url: string }> {
  const broker = new MemoryBroker(options)
  open.push(broker)
  const { urls } = await broker.serve({ tcp: 0 })
  return { broker, url: urls[0] ?? '' }
}

describe('an honest broker', () => {
  it('is found so, and nothing is left behind', async () => {
    const { broker, url } = await served({})
    const { code, findings } = await examined(url, '--probe', '--prefix', 'test/here')
    expect(bad(findings)).toEqual([])
    expect(code).toBe(0)
    const tried = findings.filter(({ check }) => check.startsWith('try: '))
    expect(tried.map(({ verdict }) => verdict)).toEqual(tried.map(() => 'ok'))
    expect(tried).toHaveLength(16)
    expect([broker.retained.size, broker.sessions.size, broker.violations]).toEqual([0, 0, []])
    for (const { topic } of broker.accepted) expect(topic).toMatch(/^test\/here\//)
  })

  it('is found so on MQTT 3.1.1 alone', async () => {
    const { broker, url } = await served({ protocolVersions: [4] })
    const { code, findings } = await examined(url, '--probe')
    expect([code, bad(findings)]).toEqual([0, []])
    expect([broker.retained.size, broker.sessions.size, broker.violations]).toEqual([0, 0, []])
  })

  it('is only looked at without --probe, and its limits are named', async () => {
    const { broker, url } = await served({
      maximumQoS: 1,
      retainAvailable: false,
      sharedSubscriptionAvailable: false,
      topicAliasMaximum: 0,
      serverKeepAlive: 7,
      protocolVersions: [5],
    })
    const { code, out } = await mqwire(['doctor', url])
    expect(code).toBe(0)
    for (const line of [
      /^Maximum QoS +not offered +1\n/m,
      /^retained messages +not offered/m,
      /^shared subscriptions +not offered/m,
      /^topic aliases +not offered/m,
      /^Server Keep Alive +ok +7 s/m,
      /^MQTT 3.1.1 +not offered/m,
    ])
      expect(out).toMatch(line)
    expect(broker.accepted).toEqual([])
  })
})

type Lie = (
  direction: 'in' | 'out',
  packet: ClientPacket | ServerPacket,
) => Packet | false | undefined

/** Changes packets of one direction and type. */
const lie =
  <T extends Packet['type']>(
    direction: 'in' | 'out',
    type: T,
    change: (packet: Extract<Packet, { type: T }>) => Packet | false | undefined,
  ): Lie =>
  (way, packet) =>
    way === direction && packet.type === type
      ? change(packet as Extract<Packet, { type: T }>)
      : undefined

const textIn = ({ payload }: PublishPacket): string => Buffer.from(payload).toString()
const without = (packet: Packet, name: string): Packet =>
  ({
    ...packet,
    properties: { ...('properties' in packet ? packet.properties : {}), [name]: undefined },
  }) as Packet

const lies: readonly (readonly [what: string, check: string, lie: Lie])[] = [
  [
    'retains nothing',
    'retained messages',
    lie('in', 'publish', (packet) => ({ ...packet, retain: false })),
  ],
  [
    'sends what is retained without RETAIN',
    'retained messages',
    lie('out', 'publish', (packet) => ({ ...packet, retain: false })),
  ],
  [
    'grants QoS 1 for 2',
    'QoS 2 round trip',
    lie('out', 'suback', (packet) => ({
      ...packet,
      reasonCodes: packet.reasonCodes.map((code) => Math.min(code, 1)),
    })),
  ],
  [
    'loses a message',
    'QoS 1 round trip',
    lie('in', 'publish', (packet) =>
      packet.qos === 1 && textIn(packet) === '3' ? { ...packet, topic: 'elsewhere' } : undefined,
    ),
  ],
  [
    'sends no identifiers',
    'subscription identifiers',
    lie('out', 'publish', (packet) => without(packet, 'subscriptionIdentifiers')),
  ],
  [
    'gives each member of a group a copy',
    'shared subscriptions',
    lie('in', 'subscribe', (packet) => ({
      ...packet,
      subscriptions: packet.subscriptions.map((each) => ({
        ...each,
        filter: each.filter.replace(/^\$share\/[^/]+\//, ''),
      })),
    })),
  ],
  [
    'forgets topic aliases',
    'topic aliases to the broker',
    lie('in', 'publish', (packet) => (packet.topic === '' ? false : undefined)),
  ],
  [
    'keeps no session',
    'session resumed',
    lie('in', 'connect', (packet) => ({ ...packet, cleanStart: true })),
  ],
  [
    'keeps sessions for ever',
    'session ends with its expiry',
    lie('in', 'disconnect', (packet) => ({
      ...packet,
      properties: { sessionExpiryInterval: 1000 },
    })),
  ],
  [
    'publishes no will',
    'will',
    lie('in', 'connect', (packet) => ({ ...packet, will: undefined }) as never),
  ],
  [
    'ignores message expiry',
    'message expiry',
    lie('in', 'publish', (packet) => without(packet, 'messageExpiryInterval')),
  ],
  [
    'ignores Receive Maximum',
    'Receive Maximum of the client',
    lie('in', 'connect', (packet) => without(packet, 'receiveMaximum')),
  ],
  [
    'ignores Maximum Packet Size',
    'Maximum Packet Size of the client',
    lie('in', 'connect', (packet) => without(packet, 'maximumPacketSize')),
  ],
]

describe('a broker that does not keep what it announces', () => {
  const outcomes = new Map<string, Awaited<ReturnType<typeof examined>>>()
  // Each waits for what does not come, most of the time: all at once.
  beforeAll(async () => {
    const each = lies.map(async ([what, , intercept]) => {
      const { url } = await served({ intercept: intercept as never })
      outcomes.set(what, await examined(url, '--probe'))
    })
    await Promise.all(each)
  })

  it.each(lies)('%s', (what, check) => {
    const { code, findings } = outcomes.get(what) as Awaited<ReturnType<typeof examined>>
    expect(bad(findings)).toContain(`try: ${check}`)
    expect(code).toBe(3)
  })
})

describe('the layers below', () => {
  const named = async (url: string, ...more: string[]): Promise<string[]> => {
    const { findings } = await examined(url, '--connect-timeout', '1s', ...more)
    return findings
      .filter(({ verdict }) => verdict !== 'ok')
      .map(({ check, verdict, seen, meaning }) => `${check} ${verdict}: ${seen}; ${meaning}`)
  }
  const tls = async (identity: { cert: string; key: string }): Promise<string> => {
    const broker = new MemoryBroker()
    open.push(broker)
    const { urls } = await broker.serve({ tcp: { port: 0, tls: identity } })
    return (urls[0] ?? '').replace('127.0.0.1', 'localhost')
  }

  it('name, port, and what speaks something else', async () => {
    const mute = createServer((socket) => socket.on('error', () => undefined).resume())
    const port = await listening(mute)
    open.push({ close: () => closed(mute) })
    const [name, nothing, other] = await Promise.all([
      named('mqtt://no-such-host.invalid'),
      named(`mqtt://127.0.0.1:${await freePort()}`),
      named(`mqtts://127.0.0.1:${port}`),
    ])
    expect(name[0]).toMatch(/^name failed/)
    expect(nothing[0]).toMatch(/^port failed: .*ECONNREFUSED; .*nothing listens/)
    expect(other[0]).toMatch(/^TLS failed/)
    expect((await mqwire(['doctor', `mqtt://127.0.0.1:${await freePort()}`])).code).toBe(2)
  })

  it('certificates', async () => {
    const { authority, server } = identities()
    const ca = path.join(folder, 'ca.pem')
    await writeFile(ca, authority.cert)
    const [self, foreign, old, wrong, known] = await Promise.all([
      named(await tls(selfSigned('localhost'))),
      named(await tls(server)),
      named(await tls(issue(authority, { days: -1 }))),
      named(await tls(issue(authority, { names: 'DNS:elsewhere.test' }))),
      named(await tls(server), '--ca', ca),
    ])
    expect(self.join()).toMatch(
      /chain failed.*signs itself.*browsers note: a browser will refuse this certificate/s,
    )
    expect(foreign.join()).toMatch(/chain failed/)
    expect(old.join()).toMatch(/expiry failed: .*it has expired/)
    expect(wrong.join()).toMatch(/name failed: DNS:elsewhere.test; none of them is localhost/)
    expect(known.map((line) => line.split(':')[0])).toEqual([
      'certificate expiry note',
      'browsers note',
    ])
  })

  it('the upgrade to a WebSocket', async () => {
    const broker = new MemoryBroker()
    const { urls } = await broker.serve({ ws: 0 })
    const bare = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => false })
    open.push(broker, bare)
    await once(bare, 'listening')
    const { port } = bare.address() as { port: number }
    const [right, path, protocol] = await Promise.all([
      named(urls[0] ?? ''),
      named((urls[0] ?? '').replace('/mqtt', '/wrong')),
      named(`ws://127.0.0.1:${port}`),
    ])
    expect(right.filter((line) => !line.startsWith('MQTT'))).toEqual([])
    expect(path[0]).toMatch(/^WebSocket failed: HTTP 4\d\d .*path/)
    expect(protocol[0]).toMatch(/^WebSocket differs: HTTP 101, no sub-protocol; .*browsers close/)
  })

  it('a password that is wrong', async () => {
    const { url } = await served({ authenticate: () => 0x86 })
    const { code, findings } = await examined(url)
    expect(code).toBe(3)
    expect(findings.find(({ check }) => check === 'MQTT 5.0')).toMatchObject({
      verdict: 'failed',
      meaning: expect.stringContaining('credentials'),
    })
  })
})
