/** Secrets given in every way, lives of every kind; nothing that a client says, to anybody, holds one of them. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type {
  ClientOptions,
  Credentials,
  CredentialsContext,
  Endpoint,
  ReconnectOptions,
} from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { Target } from '../../../src/transport/transport.js'
import { agreeable } from './harness.js'
import { Listener, secrets, secretsIn } from './telling.js'
import { asking, bytes, toy } from './toy-auth.js'

type Way = 'options' | 'url' | 'credentials' | 'auth'

const ways: Record<
  Way,
  { endpoint: Endpoint; options: ClientOptions; sung: readonly (keyof typeof secrets)[] }
> = {
  options: {
    endpoint: {
      url: `ws://host/path?token=${secrets.query}`,
      headers: { authorization: `Bearer ${secrets.header}` },
    },
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
    options: {
      auth: toy({ start: () => secrets.authData, continue: () => bytes(secrets.authData) }).auth,
    },
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
    const all = { ...options, ...more }
    const { credentials } = all
    const asking = credentials && {
      credentials: (context: CredentialsContext) => credentials(this.#heard(context)),
    }
    const common = {
      clientId: 'a',
      stats: true,
      logger: this.listener.logger,
      reconnect,
      connectTimeout: 5000,
    }
    this.client = new BaseClient(platform, endpoint, { ...common, ...all, ...asking })
    this.listener.attend(this.client)
    this.listener.interrogate(this.client)
  }

  /** What the application is told of the endpoint has no user-info; the query, it may need. */
  #heard(context: CredentialsContext): CredentialsContext {
    this.listener.hear('credentials()', {
      ...context,
      endpoint: context.endpoint.replace(/\?.*/, ''),
    })
    return context
  }

  #dial(target: Target) {
    this.targets.push(target)
    const met = this.meets(this.targets.length)
    if (met instanceof Error) throw met
    const [near, far] = memoryPair({
      schedule: (callback, delay) => this.clock.setTimer(callback, delay),
    })
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
    const { client } = this
    this.call('publish()', client.publish('a', 'b', { qos: 1 }))
    this.call('publish()', client.publish('a', 'b', { qos: 2, ackTimeout: 10 }))
    this.call('publish()', client.publish('a/#', 'b'))
    this.call('subscribe()', client.subscribe('a'))
    const nothing = () => undefined
    this.call('listen()', client.listen('b', nothing))
    this.call('request()', client.request('c', 'd', { timeout: 10 }))
    this.call('unsubscribe()', client.unsubscribe('none'))
    this.call('reauthenticate()', client.reauthenticate())
    this.call('connect()', client.connect())
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
const silent: Answer = () => undefined
const refusal =
  (reasonCode: number): Answer =>
  (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode, properties: { reasonString: 'no' } }
      : undefined

/** What a server of this way says yes with. */
const yes = (way: Way): Answer =>
  way === 'auth' ? withServerData(asking('one', secrets.serverData)) : welcome

/** What the server says in packets of this type is a secret, too. */
function withServerData(answer: Answer, type: 'connack' | 'auth' = 'auth'): Answer {
  return (packet) => {
    const given = answer(packet)
    if (given === undefined || !('type' in given) || given.type !== type) return given
    const authenticationData = bytes(secrets.serverData)
    return { ...given, properties: { ...given.properties, authenticationData } }
  }
}

const unreachable = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const goodbye = (life: Life, reasonCode: number, serverReference?: string): void =>
  life.peer.send({
    type: 'disconnect',
    reasonCode,
    properties: { reasonString: 'no', serverReference },
  })
const work = (life: Life): Promise<void> => life.work()
/** The server answers nothing any more, and calls are made. */
const deaf = (life: Life): Promise<void> => {
  life.peer.answer = silent
  return life.work()
}

/** What a dial meets, what happens then, how much time passes, and further options. */
type Story = [
  meets: (dial: number, way: Way) => Answer | Error,
  act?: ((life: Life, way: Way) => unknown) | undefined,
  time?: number,
  options?: ClientOptions,
]
const good: Story[0] = (_dial, way) => yes(way)

const stories: Record<string, Story> = {
  'all goes well': [good, work, 1000],
  'refused for good': [() => refusal(0x8a)],
  'refused for the login, refreshed, refused again': [() => refusal(0x86)],
  'refused, then let in': [
    (dial, way) => (dial < 3 ? refusal(0x88) : yes(way)),
    work,
    5000,
    { firstConnect: 'wait' },
  ],
  'no CONNACK': [() => silent, undefined, 6000],
  'nobody there': [() => unreachable],
  'cut before CONNACK': [() => silent, (life) => life.peer.cut()],
  'cut with work in flight, and made again': [
    good,
    async (life) => {
      await deaf(life)
      life.peer.cut()
    },
    5000,
  ],
  'no PINGRESP': [good, deaf, 10_000, { keepAlive: 5, pingTimeout: 1000 }],
  'malformed bytes': [good, (life) => life.peer.sendBytes('00 00'), 3000],
  'malformed instead of CONNACK': [
    () => silent,
    (life) => life.peer.sendBytes('48 54 54 50 2f 31'),
  ],
  'taken over': [good, (life) => goodbye(life, 0x8e)],
  'sent elsewhere': [
    good,
    (life) => goodbye(life, 0x9c, 'elsewhere'),
    5000,
    { serverReferences: ['elsewhere'] },
  ],
  'another list of brokers': [
    good,
    async (life, way) => {
      const third = `mqtt://${secrets.urlUser}:${secrets.urlPassword}@third/?${secrets.query}`
      life.client.setBrokers([ways[way].endpoint, third])
      life.call('reconnect()', life.client.reconnect({ force: true, reason: 'moved' }))
      await life.clock.advance(8000)
      life.peer.cut()
    },
    5000,
  ],
}

const table = Object.keys(stories).flatMap((name) =>
  (Object.keys(ways) as Way[]).map((way) => ({ name, way })),
)

it.each(table)('secrets never come out: given by $way: $name', async ({ way, name }) => {
  const [meets, act, time = 0, options] = stories[name] as Story
  const life = await new Life(way, (dial) => meets(dial, way), options).up()
  await act?.(life, way)
  await life.clock.advance(time)
  expect(await life.over()).toEqual([])
  expect(life.listener.heard.get('log')).toBeGreaterThan(0)
  expect(life.listener.heard.get('client')).toBeGreaterThan(5)
  // They were there: on the wire, or with the one who dials.
  const { sung } = ways[way]
  expect(life.sung).toEqual(
    expect.arrayContaining(
      life.peers.length === 0 ? sung.filter((name) => /query|header/i.test(name)) : [...sung],
    ),
  )
  // Nothing went unheard.
  for (const kind of ['trace state', 'state', 'dial'])
    expect(life.listener.heard.get(kind), kind).toBeGreaterThan(0)
})

it('secrets never come out: the last word of the server, in CONNACK, reaches the mechanism and nobody else', async () => {
  const words: unknown[] = []
  const auth = toy({
    success: (data) => void words.push(Buffer.from(data ?? []).toString()),
  }).auth
  const life = await new Life('auth', () => withServerData(yes('auth'), 'connack'), { auth }).up()
  expect(words).toEqual([secrets.serverData])
  expect(await life.over()).toEqual([])
  expect(life.listener.heard.get('packet')).toBeGreaterThan(0)
})

describe('re-authentication and renewal', () => {
  it.each([
    ['works', undefined],
    ['the server refuses', 'f0 02 87 00'],
    ['the server ends it', 'e0 02 87 00'],
    ['the server is wrong', 'f0 00'],
    ['the server falls silent', ''],
  ])('%s', async (_name, hex) => {
    const life = await new Life('auth', () => yes('auth')).up()
    if (hex !== undefined) life.peer.answer = silent
    life.call('reauthenticate()', life.client.reauthenticate())
    await life.clock.settle()
    if (hex === undefined)
      expect([life.peers.length, life.peer.all('auth').length > 3]).toEqual([1, true])
    else if (hex !== '') life.peer.sendBytes(hex)
    await life.clock.advance(40_000)
    expect(await life.over()).toEqual([])
  })

  it.each(['start', 'continue', 'success'] as const)('the mechanism fails in %s', async (step) => {
    const boom = (): never => {
      throw new Error('no ticket')
    }
    const wrong = () => ({ [secrets.wrong]: secrets.wrong }) as never
    for (const broken of [boom, wrong, () => Promise.reject(new Error('late'))]) {
      const data = () => secrets.authData
      const { auth } = toy({ start: data, continue: data, [step]: broken })
      const life = await new Life('auth', () => yes('auth'), { auth }).up()
      await life.work()
      expect(await life.over()).toEqual([])
    }
  })

  it.each([
    ['by a new connection', 'url', Number.POSITIVE_INFINITY],
    ['by re-authentication', 'auth', Number.POSITIVE_INFINITY],
    ['with credentials() that fail the second time', 'url', 1],
    ['with credentials() that fail at once', 'url', 0],
  ] as const)('before they run out, %s', async (_how, way, answers) => {
    let calls = 0
    const credentials = (): Credentials => {
      if (++calls > answers) throw new Error('no vault')
      const expiresAt = life.clock.now() + 10_000
      return { username: secrets.givenUsername, password: secrets.givenPassword, expiresAt }
    }
    const life: Life = new Life(way, () => yes(way), { refreshBefore: 1000, credentials })
    await life.up()
    await life.clock.advance(25_000)
    if (answers > 0) expect(calls).toBeGreaterThan(1)
    if (way === 'auth') expect(life.peers[0]?.all('auth').length).toBeGreaterThan(2)
    else if (answers > 1) expect(life.peers.length).toBeGreaterThan(1)
    expect(await life.over()).toEqual([])
    if (way === 'url' && answers > 0)
      expect(life.sung).toEqual(expect.arrayContaining(['givenUsername', 'givenPassword']))
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
    [
      'a URL of another scheme',
      { url: `ftp://${secrets.wrong}:${secrets.wrong}@host/?${secrets.wrong}` },
    ],
    [
      'a URL with a port out of range',
      { url: `mqtt://${secrets.wrong}@host:99999/?${secrets.wrong}` },
    ],
    ['a time that is none', { expiresAt: secrets.wrong }],
    ['an option that is none', { [secrets.wrong]: secrets.wrong }],
    ['text', secrets.wrong],
  ])('credentials() give %s', async (name, given) => {
    const life = await new Life('options', () => welcome, {
      credentials: () => given as Credentials,
    }).up()
    await life.clock.advance(5000)
    const leaks = await life.over()
    // The name of an option is no secret, and must be told to whoever misspelt it.
    expect(
      leaks.filter((leak) => !(name === 'an option that is none' && leak.startsWith('wrong'))),
    ).toEqual([])
  })
})

it('the search hears what any test of the suite prints on the console or warns of', () => {
  const { takeOverheardSecrets: overheard } = globalThis as unknown as {
    takeOverheardSecrets: () => string[]
  }
  console.log('login %o', { password: secrets.password })
  expect(overheard()).toHaveLength(1)
  process.emitWarning(`cannot log in with ${secrets.password}`)
  expect(overheard()).toHaveLength(1)
})
