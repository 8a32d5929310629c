/** T17 N36: secrets given in every way, lives of every kind; nothing that a client says, to anybody, holds one of them. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Credentials, CredentialsContext, Endpoint, ReconnectOptions } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import type { Platform } from '../../../src/client/platform/platform.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { Target } from '../../../src/transport/transport.js'
import { agreeable } from './harness.js'
import { Listener, secrets, secretsIn, told } from './telling.js'
import { asking, bytes, toy } from './toy-auth.js'

type Way = 'options' | 'url' | 'credentials' | 'auth'

const ways: Record<Way, { endpoint: Endpoint; options: ClientOptions; sung: readonly (keyof typeof secrets)[] }> = {
  options: {
    endpoint: { url: `ws://host/path?token=${secrets.query}`, headers: { authorization: `Bearer ${secrets.header}` } },
    options: { username: secrets.username, password: secrets.password },
    sung: ['username', 'password', 'query', 'header'],
  },
  url: {
    endpoint: `mqtt://${secrets.urlUser}:${secrets.urlPassword}@host:1883/?token=${secrets.query}`,
    options: {},
    sung: ['urlUser', 'urlPassword', 'query'],
  },
  credentials: {
    endpoint: `ws://${secrets.urlUser}:${secrets.urlPassword}@host/`,
    options: {
      credentials: async (): Promise<Credentials> => ({
        username: secrets.givenUsername,
        password: bytes(secrets.givenPassword),
        headers: { cookie: secrets.givenHeader },
        url: `ws://${secrets.urlUser}:${secrets.urlPassword}@other/?signature=${secrets.givenQuery}`,
      }),
    },
    sung: ['givenUsername', 'givenPassword', 'givenQuery', 'givenHeader'],
  },
  auth: {
    endpoint: 'mqtt://host',
    options: { auth: toy({ start: () => secrets.authData, continue: () => bytes(secrets.authData) }).auth },
    sung: ['authData'],
  },
}

/** One client with its secrets, in a world that a test plays. */
class Life {
  readonly clock = new VirtualClock()
  readonly listener = new Listener()
  readonly peers: ScriptedPeer[] = []
  readonly targets: Target[] = []
  readonly client: BaseClient
  readonly #outcomes: Promise<unknown>[] = []
  /** What the n-th dial, from 1, meets; an error is one that fails. */
  meets: (dial: number) => Answer | Error

  constructor(way: Way, meets: (dial: number) => Answer | Error, more: ClientOptions = {}) {
    this.meets = meets
    const { endpoint, options } = ways[way]
    const platform: Platform = {
      ...virtualPlatform(this.clock),
      dialler: () => async (target) => this.#dial(target),
      trace: (type, event) => this.listener.hear(`trace ${type}`, event),
      traced: () => true,
    }
    const reconnect: ReconnectOptions = {
      backoff: () => 1000,
      decide: (error, context) => {
        this.listener.hear('decide()', error)
        this.listener.hear('decide()', context)
        return undefined
      },
    }
    const credentials = more.credentials ?? options.credentials
    const asking: ClientOptions = credentials === undefined ? {} : { credentials: (context) => credentials(this.#heard(context)) }
    const all = { clientId: 'a', stats: true, logger: this.listener.logger, reconnect, connectTimeout: 5000, ...options, ...more, ...asking }
    this.client = new BaseClient(platform, endpoint, all)
    this.listener.attend(this.client)
    this.listener.interrogate(this.client)
  }

  /** What the application is told of the endpoint has no user-info; the query, it may need. */
  #heard(context: CredentialsContext): CredentialsContext {
    this.listener.hear('credentials()', { ...context, endpoint: context.endpoint.replace(/\?.*/, '') })
    return context
  }

  #dial(target: Target) {
    this.targets.push(target)
    const met = this.meets(this.targets.length)
    if (met instanceof Error) throw met
    const [near, far] = memoryPair({ schedule: (callback, delay) => this.clock.setTimer(callback, delay) })
    this.peers.push(new ScriptedPeer(far, 5, met))
    return near
  }

  get peer(): ScriptedPeer {
    return this.peers.at(-1) as ScriptedPeer
  }

  /** Follows a call to its end. */
  call(kind: string, promise: Promise<unknown>): void {
    this.#outcomes.push(this.listener.follow(kind, promise))
  }

  async up(): Promise<this> {
    this.call('connect()', this.client.connect())
    await this.clock.settle()
    return this
  }

  /** Calls of every kind, which may come to nothing. */
  async work(): Promise<void> {
    this.call('publish()', this.client.publish('a', 'b', { qos: 1 }))
    this.call('publish()', this.client.publish('a', 'b', { qos: 2, ackTimeout: 10 }))
    this.call('publish()', this.client.publish('a/#', 'b'))
    this.call('subscribe()', this.client.subscribe('a'))
    this.call(
      'listen()',
      this.client.listen('b', () => undefined),
    )
    this.call('request()', this.client.request('c', 'd', { timeout: 10 }))
    this.call('unsubscribe()', this.client.unsubscribe('none'))
    this.call('reauthenticate()', this.client.reauthenticate())
    this.call('connect()', this.client.connect())
    await this.clock.settle()
  }

  /** The end; gives what came out. */
  async over(): Promise<string[]> {
    this.call('disconnect()', this.client.disconnect({ timeout: 0 }))
    await this.clock.advance(60_000)
    await Promise.all(this.#outcomes)
    await this.listener.follow('closed', this.client.closed)
    this.listener.interrogate(this.client)
    return this.listener.leaks
  }

  /** The secrets that were used: on the wire, or given to the one who dials. */
  get sung(): string[] {
    const wire = this.peers.map((peer) => Buffer.from(peer.bytes).toString('latin1'))
    const dialled = this.targets.map(({ url, headers }) => `${url.href} ${JSON.stringify(headers)}`)
    return secretsIn([...wire, ...dialled].join(' '))
  }
}

const welcome: Answer = (packet) => agreeable(packet)
const refusal =
  (reasonCode: number): Answer =>
  (packet) =>
    packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode, properties: { reasonString: 'no' } } : undefined

/** What a server of this way says yes with. */
const yes = (way: Way): Answer => (way === 'auth' ? withServerData(asking('one', secrets.serverData)) : welcome)

/** What the server says in packets of this type is a secret, too. */
function withServerData(answer: Answer, type: 'connack' | 'auth' = 'auth'): Answer {
  return (packet) => {
    const given = answer(packet)
    if (given === undefined || !('type' in given) || given.type !== type) return given
    return { ...given, properties: { ...given.properties, authenticationData: bytes(secrets.serverData) } }
  }
}

type Story = (way: Way) => Promise<Life>

const stories: Record<string, Story> = {
  'all goes well': async (way) => {
    const life = await new Life(way, () => yes(way)).up()
    await life.work()
    await life.clock.advance(1000)
    return life
  },
  'refused for good': async (way) => new Life(way, () => refusal(0x8a)).up(),
  'refused for the login, refreshed, refused again': async (way) => new Life(way, () => refusal(0x86)).up(),
  'refused, then let in': async (way) => {
    const life = await new Life(way, (dial) => (dial < 3 ? refusal(0x88) : yes(way)), { firstConnect: 'wait' }).up()
    await life.work()
    await life.clock.advance(5000)
    return life
  },
  'no CONNACK': async (way) => {
    const life = await new Life(way, () => () => undefined).up()
    await life.clock.advance(6000)
    return life
  },
  'nobody there': async (way) => new Life(way, () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })).up(),
  'cut before CONNACK': async (way) => {
    const life = await new Life(way, () => () => undefined).up()
    life.peer.cut()
    await life.clock.settle()
    return life
  },
  'cut with work in flight, and made again': async (way) => {
    const life = await new Life(way, () => yes(way)).up()
    life.peer.answer = () => undefined
    await life.work()
    life.peer.cut()
    await life.clock.advance(5000)
    return life
  },
  'no PINGRESP': async (way) => {
    const life = await new Life(way, () => yes(way), { keepAlive: 5, pingTimeout: 1000 }).up()
    life.peer.answer = () => undefined
    await life.work()
    await life.clock.advance(10_000)
    return life
  },
  'malformed bytes': async (way) => {
    const life = await new Life(way, () => yes(way)).up()
    life.peer.sendBytes('00 00')
    await life.clock.advance(3000)
    return life
  },
  'malformed instead of CONNACK': async (way) => {
    const life = await new Life(way, () => () => undefined).up()
    life.peer.sendBytes('48 54 54 50 2f 31 2e 31')
    await life.clock.settle()
    return life
  },
  'taken over': async (way) => {
    const life = await new Life(way, () => yes(way)).up()
    life.peer.send({ type: 'disconnect', reasonCode: 0x8e, properties: { reasonString: 'another' } })
    await life.clock.settle()
    return life
  },
  'sent elsewhere': async (way) => {
    const life = await new Life(way, () => yes(way), { serverReferences: ['elsewhere'] }).up()
    life.peer.send({ type: 'disconnect', reasonCode: 0x9c, properties: { serverReference: 'elsewhere' } })
    await life.clock.advance(5000)
    return life
  },
  'another list of brokers': async (way) => {
    const life = await new Life(way, () => yes(way)).up()
    life.client.setBrokers([ways[way].endpoint, `mqtt://${secrets.urlUser}:${secrets.urlPassword}@third/?${secrets.query}`])
    life.call('reconnect()', life.client.reconnect({ force: true, reason: 'moved' }))
    await life.clock.advance(8000)
    life.peer.cut()
    await life.clock.advance(5000)
    return life
  },
}

const table = Object.entries(stories).flatMap(([name, story]) => (Object.keys(ways) as Way[]).map((way) => ({ name, way, story })))

describe('secrets never come out', () => {
  it.each(table)('given by $way: $name', async ({ way, story }) => {
    const life = await story(way)
    expect(await life.over()).toEqual([])
    expect(life.listener.heard.get('log')).toBeGreaterThan(0)
    expect(life.listener.heard.get('client')).toBeGreaterThan(5)
    // They were there: on the wire, or with the one who dials.
    const { sung } = ways[way]
    expect(life.sung).toEqual(expect.arrayContaining(life.peers.length === 0 ? sung.filter((name) => /query|header/i.test(name)) : [...sung]))
    // Nothing went unheard.
    for (const kind of ['trace state', 'state', 'dial']) expect(life.listener.heard.get(kind), kind).toBeGreaterThan(0)
  })

  it('packet events were there to be heard, with CONNECT and AUTH among them', async () => {
    const life = new Life('auth', () => yes('auth'))
    const seen: string[] = []
    life.client.on('packet', ({ direction, packet }) => seen.push(`${direction} ${packet.type}`))
    await life.up()
    expect(seen).toEqual(expect.arrayContaining(['out connect', 'in auth', 'out auth', 'in connack']))
    expect(await life.over()).toEqual([])
  })

  it('the last word of the server, in CONNACK, reaches the mechanism and nobody else', async () => {
    const words: unknown[] = []
    const auth = toy({ success: (data) => void words.push(Buffer.from(data ?? []).toString()) }).auth
    const life = await new Life('auth', () => withServerData(yes('auth'), 'connack'), { auth }).up()
    expect(words).toEqual([secrets.serverData])
    expect(await life.over()).toEqual([])
  })
})

describe('re-authentication and renewal', () => {
  const renewing = (life: () => Life, more: Partial<Credentials> = {}) => ({
    refreshBefore: 1000,
    credentials: (): Credentials => ({
      username: secrets.givenUsername,
      password: secrets.givenPassword,
      expiresAt: life().clock.now() + 10_000,
      ...more,
    }),
  })

  it('that works', async () => {
    const life: Life = await new Life('auth', () => yes('auth')).up()
    life.call('reauthenticate()', life.client.reauthenticate())
    await life.clock.advance(1000)
    expect(life.peers).toHaveLength(1)
    expect(life.peer.all('auth').length).toBeGreaterThan(3)
    expect(await life.over()).toEqual([])
  })

  it.each([
    ['the server refuses', 'f0 02 87 00'],
    ['the server ends it', 'e0 02 87 00'],
    ['the server is wrong', 'f0 00'],
    ['the server falls silent', ''],
  ])('%s', async (_name, hex) => {
    const life: Life = await new Life('auth', () => yes('auth')).up()
    life.peer.answer = () => undefined
    life.call('reauthenticate()', life.client.reauthenticate())
    await life.clock.settle()
    if (hex !== '') life.peer.sendBytes(hex)
    await life.clock.advance(40_000)
    expect(await life.over()).toEqual([])
  })

  it.each(['start', 'continue', 'success'] as const)('the mechanism fails in %s', async (step) => {
    const boom = (): never => {
      throw new Error('no ticket')
    }
    for (const broken of [boom, () => ({ [secrets.wrong]: secrets.wrong }) as never, () => Promise.reject(new Error('late'))]) {
      const auth = toy({ start: () => secrets.authData, continue: () => secrets.authData, [step]: broken }).auth
      const life = await new Life('auth', () => yes('auth'), { auth }).up()
      await life.work()
      expect(await life.over()).toEqual([])
    }
  })

  it('by a new connection before they run out', async () => {
    const life: Life = new Life(
      'url',
      () => welcome,
      renewing(() => life),
    )
    await life.up()
    await life.clock.advance(25_000)
    expect(life.peers.length).toBeGreaterThan(1)
    expect(await life.over()).toEqual([])
    expect(life.sung).toEqual(expect.arrayContaining(['givenUsername', 'givenPassword']))
  })

  it('by re-authentication before they run out', async () => {
    const life: Life = new Life(
      'auth',
      () => yes('auth'),
      renewing(() => life),
    )
    await life.up()
    await life.clock.advance(25_000)
    expect(life.peers[0]?.all('auth').length).toBeGreaterThan(2)
    expect(await life.over()).toEqual([])
  })

  it('with credentials() that fail the second time', async () => {
    let calls = 0
    const life: Life = new Life('url', () => welcome, {
      refreshBefore: 1000,
      credentials: () => {
        calls += 1
        if (calls > 1) throw new Error('no vault')
        return { username: secrets.givenUsername, password: secrets.givenPassword, expiresAt: life.clock.now() + 10_000 }
      },
    })
    await life.up()
    await life.clock.advance(40_000)
    expect(calls).toBeGreaterThan(1)
    expect(await life.over()).toEqual([])
  })

  it.each([
    ['a user name that is no text', { username: { [secrets.wrong]: 1 } }],
    ['a user name that is too long', { username: secrets.wrong.repeat(5000) }],
    ['a user name with half a surrogate', { username: `${secrets.wrong}\ud800` }],
    ['a password that is no payload', { password: [secrets.wrong] }],
    ['a password that is too long', { password: secrets.wrong.repeat(5000) }],
    ['headers that are none', { headers: { cookie: [secrets.wrong] } }],
    ['headers with a line break', { headers: { cookie: `${secrets.wrong}\r\nx: y` } }],
    ['a URL that is none', { url: `//${secrets.wrong}:${secrets.wrong}@host` }],
    ['a URL of another scheme', { url: `ftp://${secrets.wrong}:${secrets.wrong}@host/?${secrets.wrong}` }],
    ['a URL with a port out of range', { url: `mqtt://${secrets.wrong}@host:99999/?${secrets.wrong}` }],
    ['a time that is none', { expiresAt: secrets.wrong }],
    ['an option that is none', { [secrets.wrong]: secrets.wrong }],
    ['text', secrets.wrong],
  ])('credentials() give %s', async (name, given) => {
    const life = await new Life('options', () => welcome, { credentials: () => given as Credentials }).up()
    await life.clock.advance(5000)
    const leaks = await life.over()
    // The name of an option is no secret, and must be told to whoever misspelt it.
    expect(leaks.filter((leak) => !(name === 'an option that is none' && leak.startsWith('wrong')))).toEqual([])
  })
})

describe('the search itself', () => {
  it.each([
    ['text', `x ${secrets.password} y`],
    ['bytes', bytes(secrets.password)],
    ['bytes deep down', { a: [{ b: new Map([['c', bytes(secrets.password)]]) }] }],
    ['base64 of a pair', Buffer.from(`user:${secrets.password}:x`).toString('base64')],
    ['hexadecimal', Buffer.from(secrets.password).toString('hex')],
    ['an error', new Error('outer', { cause: new Error(secrets.password) })],
    ['errors of an error', new AggregateError([new Error('x', { cause: { token: secrets.password } })])],
    ['what is not enumerable', Object.defineProperty({}, 'hidden', { value: secrets.password })],
  ])('finds %s', (_name, value) => {
    expect(secretsIn(told(value))).toEqual(['password'])
  })

  it('finds nothing where there is nothing', () => {
    expect(secretsIn(told({ a: 'canary', b: new Error('c') }))).toEqual([])
  })

  it('hears a client that talks', async () => {
    const life = await new Life('options', () => welcome).up()
    life.listener.logger.info(`debug: ${secrets.password}`)
    expect(await life.over()).toEqual(['password in log'])
  })

  it('hears what any test of the suite prints on the console or warns of', () => {
    const { takeOverheardSecrets: overheard } = globalThis as unknown as { takeOverheardSecrets: () => string[] }
    console.log('login %o', { password: secrets.password })
    expect(overheard()).toHaveLength(1)
    process.emitWarning(`cannot log in with ${secrets.password}`)
    expect(overheard()).toHaveLength(1)
  })
})
