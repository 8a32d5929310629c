/** Several servers: their order, a list that is replaced, and Server Reference. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import { agreeable, coded, failure, times } from './harness.js'
import { type Behaviour, causes, down, Rig, reconnect, refusing, rigged, welcoming } from './rig.js'
import { settled } from './steps.js'

type Behave = (host: string, dial: number) => Behaviour

/** These hosts are up. */
const up = (names: string) => (host: string) => (names.includes(host) ? agreeable : down)

/** `a` does this, every other host agrees. */
const only = (behaviour: Behaviour) => (host: string) => (host === 'a' ? behaviour : agreeable)

const rigOf = (hosts: string, behave: Behave = () => agreeable, options: ClientOptions = {}): Rig =>
  rigged(options, { hosts: [...hosts], behave })

const brokers = (rig: Rig, hosts: string): void =>
  rig.client.setBrokers([...hosts].map((host) => rig.endpoint(host)))

/** Which hosts were dialled, and it ended up connected, or not. */
function expectDials(rig: Rig, hosts: string, state = 'connected'): void {
  expect([rig.hosts.join(''), rig.client.state]).toEqual([hosts, state])
}

describe('a list of servers', () => {
  it('all down: tried in order, once each, and the error has each of them', async () => {
    const rig = rigOf('abc', () => down)
    const error = await settled(rig, failure(rig.client.connect()))
    expect(error.code).toBe('ERR_CONNECT_FAILED')
    expect(causes(error).map((cause) => [cause.code, cause.cause])).toEqual(
      times(3, () => ['ERR_CONNECT_FAILED', down]),
    )
    const endpoints = ['x://a', 'x://b', 'x://c']
    expect(error.message).toBe(
      endpoints.map((endpoint) => `${endpoint}: connect failed: connect ECONNREFUSED`).join('\n'),
    )
    const dials = endpoints.map((endpoint, index) => ({ attempt: index + 1, endpoint }))
    expect(rig.seen('dial')).toEqual(dials)
    expect(rig.seen('connecterror')).toMatchObject(
      dials.map((dial, index) => ({ ...dial, error: causes(error)[index] })),
    )
    expect(await rig.client.closed).toBe(error)
    expect([rig.delays, rig.clock.pending]).toEqual([[], 0])
    expectDials(rig, 'abc', 'closed')
  })

  it('one that refused is asked again once another one has worked and is lost', async () => {
    const rig = await rigOf('ab', only(refusing(0x8a))).up()
    await rig.advance(60_000)
    rig.behave = up('a')
    await rig.cut(10_000)
    expectDials(rig, 'abba')
  })

  it('one that takes us in and hangs up again and again is not all there is: the others get their turn', async () => {
    const rig = await rigOf('ab').up()
    for (let round = 0; round < 4 && rig.hosts.at(-1) === 'a'; round++) {
      await rig.advance(50)
      await rig.cut(rig.delays.at(-1) ?? 0)
    }
    expect(rig.hosts.join('')).toMatch(/^aa+b/)
  })
})

describe('setBrokers', () => {
  it('before connect(): the new list is dialled', async () => {
    const rig = rigged()
    brokers(rig, 'b')
    expectDials(await rig.up(), 'b')
  })

  it('while connected: the connection stays, the next dial goes to the new list', async () => {
    const rig = await rigOf('ab').up()
    brokers(rig, 'cd')
    await rig.advance(60_000)
    expect([rig.client.state, rig.hosts]).toEqual(['connected', ['a']])
    await rig.cut(1000)
    expectDials(rig, 'ac')
  })

  it.each([false, true])('while waiting: with the next dial, in a hurry: %s', async (hurry) => {
    const rig = await rigged().up()
    rig.behave = up('b')
    await rig.cut(1500)
    brokers(rig, 'b')
    if (hurry) rig.client.reconnect()
    await rig.settle()
    expect(rig.client.state).toBe(hurry ? 'connected' : 'reconnecting')
    await rig.advance(1500)
    expectDials(rig, 'aab')
  })

  it('while an attempt is under way at one that is not in it: given up, reported as such, not counted, and the new list is dialled at once', async () => {
    const rig = await rigOf('a', undefined, { reconnect: { ...reconnect, maxAttempts: 1 } }).up()
    rig.behave = only('hang')
    await rig.cut(1100)
    brokers(rig, 'bc')
    await rig.settle()
    expect(rig.dials.map(({ host, at }) => `${host} ${at}`)).toEqual(['a 0', 'a 1000', 'b 1100'])
    expect(rig.dials[1]?.signal.aborted).toBe(true)
    // Each `dial` has its end.
    const message = expect.stringContaining('setBrokers') as string
    const error = { code: 'ERR_CONNECT_FAILED', fault: 'local', message }
    expect(rig.seen('connecterror')).toMatchObject([{ endpoint: 'x://a', error }])
    expectDials(rig, 'aab')
  })

  it('while an attempt is under way at one that is in it: that goes on, and the list with what follows it', async () => {
    const rig = await rigOf('a', undefined, { connectTimeout: 500 }).up()
    rig.behave = only('hang')
    await rig.cut(1100)
    brokers(rig, 'bac')
    await rig.settle()
    expect(rig.dials[1]?.signal.aborted).toBe(false)
    await rig.advance(400 + 2000)
    expectDials(rig, 'aac')
  })

  it.each<[string, ClientOptions, Behaviour]>([
    ['reject: the dial hangs', { firstConnect: 'reject' }, 'hang'],
    ['wait: the dial hangs', { firstConnect: 'wait' }, 'hang'],
    ['CONNACK does not come', {}, () => undefined],
  ])('gives up the first attempt, %s', async (_what, options, behaviour) => {
    const rig = rigOf('a', only(behaviour), options)
    const connecting = rig.client.connect()
    await rig.advance(300)
    const [silent] = rig.peers
    brokers(rig, 'b')
    await settled(rig, connecting)
    expect(rig.dials.map(({ host, at }) => `${host} ${at}`)).toEqual(['a 0', 'b 300'])
    expect([silent?.ended !== undefined, rig.open]).toEqual([silent !== undefined, 1])
    expect(rig.seen('connect')).toMatchObject([{ endpoint: 'x://b' }])
  })

  it('during the first dial, with the endpoint of it in the new list: the round goes on with the others, each once', async () => {
    const rig = rigOf('a', (host) => (host === 'a' ? 'hang' : down), { connectTimeout: 500 })
    const error = failure(rig.client.connect())
    await rig.advance(300)
    brokers(rig, 'bac')
    await rig.advance(1000)
    expect(rig.hosts.join('')).toBe('acb')
    const codes = ['ERR_CONNECT_TIMEOUT', 'ERR_CONNECT_FAILED', 'ERR_CONNECT_FAILED']
    expect(causes(await error).map(({ code }) => code)).toEqual(codes)
  })

  it('while credentials() hangs: its signal aborts, and the new endpoint is asked for', async () => {
    const signals: AbortSignal[] = []
    const rig = rigged({
      credentials: ({ signal, endpoint }) => {
        signals.push(signal)
        return endpoint === 'x://a' ? new Promise(() => undefined) : {}
      },
    })
    const connecting = rig.client.connect()
    await rig.settle()
    brokers(rig, 'b')
    await settled(rig, connecting)
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false])
    expectDials(rig, 'b')
  })

  it('in every `dial`, with another host each time: a dial a second, no more', async () => {
    const rig = rigOf('a', () => 'hang', { firstConnect: 'wait' })
    let round = 0
    rig.client.on('dial', () => rig.client.setBrokers(rig.endpoint(`host-${round++}`)))
    failure(rig.client.connect())
    await rig.advance(10_500)
    expect(round).toBeGreaterThan(5)
    expect(round).toBeLessThanOrEqual(12)
  })

  it('in connecterror of the first round without reconnecting: the round goes on with the new list', async () => {
    const rig = rigOf('a', up('b'), { reconnect: false })
    rig.client.on('connecterror', () => brokers(rig, 'cb'), { once: true })
    await settled(rig, rig.client.connect(), 1000)
    expectDials(rig, 'acb')
  })

  it.each([0x8e, 0x98, 0x9c, 0x87])('in serverdisconnect it is a try: %i', async (code) => {
    const rig = await rigged().up()
    rig.client.on('serverdisconnect', () => brokers(rig, 'b'))
    await rig.goodbye(code)
    expect(rig.client.state).toBe('reconnecting')
    await rig.advance(1000)
    expectDials(rig, 'ab')
  })

  it.each(['reject', 'wait'] as const)('in connecterror it is a try: %s', async (firstConnect) => {
    const rig = rigOf('a', only(refusing(0x8a)), { firstConnect })
    rig.client.on('connecterror', () => brokers(rig, 'b'))
    await settled(rig, rig.client.connect(), 1000)
    expectDials(rig, 'ab')
  })

  it('in connecterror every time: never without back-off', async () => {
    const rig = rigOf('a', () => refusing(0x8a), { firstConnect: 'wait' })
    let round = 0
    rig.client.on('connecterror', () => rig.client.setBrokers(rig.endpoint(`host-${round++}`)))
    failure(rig.client.connect())
    await rig.advance(30_500)
    expect(rig.delays).toEqual([1000, 2000, 4000, 8000, 16_000])
  })

  it('is checked like the constructor, and changes nothing when it throws', async () => {
    const rig = await rigged().up()
    const refused = (list: unknown): unknown => {
      try {
        return rig.client.setBrokers(list as string)
      } catch (error) {
        return (error as MqttError).code
      }
    }
    expect(refused([])).toBe('ERR_MISSING_BROKER')
    expect(refused('nowhere')).toBe('ERR_INVALID_BROKER_URL')
    expect(refused(5)).toMatch(/^ERR_INVALID_(OPTION|BROKER_URL)$/)
    await rig.cut(1000)
    expectDials(rig, 'aa')
    await rig.finish()
    expect(refused(rig.endpoint('b'))).toBe('ERR_CLOSED')
  })
})

const departures = [0x9c, 0x9d]
const allowed = { serverReferences: ['b:1'] }

/** Host `a:1` refuses with this code and sends us to `b:1`; the others agree. */
const away =
  (code: number) =>
  (host: string): Behaviour =>
    host === 'a:1' ? refusing(code, { serverReference: 'b:1' }) : agreeable

/** Connects to `a:1`, is sent away with this reference, and lets ten seconds pass. */
async function sentAway(serverReference: string, options: ClientOptions, code = 0x9c) {
  const rig = await rigged(options, { hosts: ['a:1'] }).up()
  await rig.goodbye(code, { serverReference })
  await rig.advance(10_000)
  return rig
}

function expectHosts(rig: Rig, ...hosts: string[]): void {
  expect(rig.hosts).toEqual(hosts)
}

describe('Server Reference without an allow-list', () => {
  it.each(departures)('%i in DISCONNECT: not followed, no blind retry', async (code) => {
    const rig = await sentAway('b:1', {}, code)
    expect(rig.seen('serverdisconnect')).toMatchObject([
      { packet: { reasonCode: code, properties: { serverReference: 'b:1' } } },
    ])
    await rig.advance(1_000_000)
    const gone = { code: 'ERR_SERVER_DISCONNECT', reasonCode: code }
    expect(await rig.client.closed).toMatchObject(gone)
    expectHosts(rig, 'a:1')
  })

  it.each(departures)('%i in CONNACK: not followed; a list moves on', async (code) => {
    const rig = rigged({}, { hosts: ['a:1', 'c:1'], behave: away(code) })
    expectHosts(await rig.up(), 'a:1', 'c:1')
  })
})

describe('Server Reference with an allow-list', () => {
  it.each(departures)('%i in DISCONNECT: followed, with the session', async (code) => {
    const options = { ...allowed, clientId: 'c', cleanStart: false }
    const rig = await rigged(options, { hosts: ['a:1', 'c:1'] }).up()
    await rig.goodbye(code, { serverReference: 'b:1' })
    expect(rig.client.state).toBe('connected')
    expect(rig.peer.last('connect')).toMatchObject({ clientId: 'c', cleanStart: false })
    expectHosts(rig, 'a:1', 'b:1')
  })

  it.each(departures)('%i in CONNACK: followed within connect()', async (code) => {
    const hosts = { hosts: ['a:1'], behave: away(code) }
    const rig = await rigged({ serverReferences: ['b'] }, hosts).up()
    expect(rig.seen('connecterror')).toMatchObject([
      { endpoint: 'x://a:1', error: { reasonCode: code } },
    ])
    expectHosts(rig, 'a:1', 'b:1')
  })

  it.each([
    ['another host', 'evil:1', 'b:1'],
    ['another port of an allowed host:port', 'b:22', 'b:1'],
    ['another port of an allowed host', 'b:22', 'b'],
    ['a name that ends like an allowed one', 'evil-b:1', 'b:1'],
    ['a name that begins like an allowed one', 'b:1.evil', 'b:1'],
    ['user-info before an allowed host', 'user@b:1', 'b:1'],
    ['a host that stands in user-info', 'b:1@evil:1', 'b:1'],
    ['a scheme of its own', 'mqtt://b:1', 'b:1'],
    ['blanks', '   ', 'b:1'],
  ])('%s is not followed', async (_name, reference, entry) => {
    const rig = await sentAway(reference, { serverReferences: [entry] })
    expect(rig.client.state).toBe('closed')
    expectHosts(rig, 'a:1')
  })

  it.each([
    ['an entry without a port opens the port in use', 'b:1', ['b']],
    ['of several names the first allowed one is followed', 'evil:1 b:1 c:1', ['c:1', 'b:1']],
  ])('%s', async (_what, reference, serverReferences) => {
    expectHosts(await sentAway(reference, { serverReferences }), 'a:1', 'b:1')
  })

  it('one that leads nowhere takes no turn of the others in the first round', async () => {
    const rig = rigged(
      { serverReferences: ['x:1'] },
      {
        hosts: ['a:1', 'b:1'],
        behave: (host) => {
          if (host === 'a:1') return refusing(0x9c, { serverReference: 'x:1' })
          return host === 'x:1' ? down : agreeable
        },
      },
    )
    await settled(rig, rig.client.connect())
    expect(rig.hosts.slice(0, 2)).toEqual(['a:1', 'x:1'])
    expect(rig.hosts.at(-1)).toBe('b:1')
  })

  it('credentials are asked for again, for the host that we were sent to', async () => {
    const credentials = ({ endpoint }: { endpoint: string }) => ({
      username: `user of ${endpoint}`,
    })
    const rig = await sentAway('b:1', { ...allowed, credentials })
    expect(rig.peers.map((peer) => peer.last('connect').username)).toEqual([
      'user of x://a:1',
      'user of x://b:1',
    ])
  })

  it('a reference in a CONNACK that accepts is not followed', async () => {
    const behave = () => welcoming({ serverReference: 'b:1' })
    const rig = await rigged(allowed, { hosts: ['a:1'], behave }).up()
    await rig.advance(5000)
    expect(rig.client.negotiated?.serverReference).toBe('b:1')
    expectHosts(rig, 'a:1')
  })

  it.each([5, 'b:1', [5], {}])('%j as allow-list is refused', (serverReferences) => {
    const refused = coded('ERR_INVALID_OPTION', 'serverReferences')
    expect(() => new Rig({ serverReferences: serverReferences as string[] })).toThrow(refused)
  })
})
