/**
 * Attacks on the link itself: slow servers, TLS that is none, detours, links that die young, sessions, authentication, time
 * (T05, T18, T20 to T23, T26 to T28).
 */
import type { ClientOptions } from '../../../../src/client/api/index.js'
import { Client as BrowserClient } from '../../../../src/client/browser.js'
import { parseOptions } from '../../../../src/client/parsing/options.js'
import type { MqttError } from '../../../../src/errors.js'
import { pause } from '../../../support/pausing.js'
import { World } from '../../../unit/client/harness.js'
import { Rig, refusing } from '../../../unit/client/rig.js'
import type { Bench } from '../bench.js'
import { connack, join, packet, properties, publish, text } from '../bytes.js'
import type { Link } from '../link.js'
import { KiB, MiB, memoryBudget, type Scenario } from '../scenario.js'

const smallest = 512 * KiB

// T05

/** Ten ways to be slow before CONNACK. */
async function dawdle(link: Link): Promise<void> {
  link.tell('accepted')
  const kind = link.number % 3
  if (kind > 0) await link.packet(1)
  const slow = connack(0, properties(0x1f, text('x'.repeat(1000))))
  for (let at = 0; kind === 2 && at < slow.length && !link.ended; at++) {
    await link.send(slow.subarray(at, at + 1))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await link.finish()
}

async function givesUp(bench: Bench): Promise<void> {
  const url = await bench.server()
  const wait = 500
  const first = bench.client(url, { connectTimeout: 50 })
  await bench.failure(first.connect())
  bench.release(first)
  await bench.told('over', 1)
  await bench.meter.start()
  const times = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const started = performance.now()
      const { code } = await bench.failure(bench.client(url, { connectTimeout: wait }).connect())
      return { code, took: performance.now() - started }
    }),
  )
  bench.same(
    times.filter(({ code }) => code !== 'ERR_CONNECT_TIMEOUT'),
    [],
    'each of ten ends with ERR_CONNECT_TIMEOUT',
  )
  const longest = Math.max(...times.map(({ took }) => took))
  bench.check(longest < wait + 500, 'on time, also while CONNACK drips', longest)
  for (let number = 2; number <= 11; number++) await bench.told('over', number)
  bench.check(true, 'no connection is left open')
  bench.same(parseOptions({}).connectTimeout, 10_000, 'the default is 10 s')
}

/** A packet of 1 MiB, a few bytes at a time: virtual time. */
async function drip(
  keepAlive: number,
  rate: number,
  seconds: number,
): Promise<{ readonly world: World; readonly lasted: number; readonly pings: number }> {
  const world = new World({ keepAlive })
  world.answer = ({ type }) =>
    type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }
      : undefined
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  const bytes = publish({ payload: Buffer.alloc(MiB - 16) })
  const started = world.clock.now()
  for (let at = 0; at < seconds && world.client.state === 'connected'; at++) {
    world.peer.sendBytes(bytes.subarray(at * rate, (at + 1) * rate))
    await world.clock.advance(1000)
  }
  return {
    world,
    lasted: (world.clock.now() - started) / 1000,
    pings: world.peer.all('pingreq').length,
  }
}

async function expectsProgress(bench: Bench): Promise<void> {
  await drip(30, 1, 5)
  await bench.meter.start()
  const slow = await drip(30, 1, 600)
  bench.check(
    slow.lasted >= 60 && slow.lasted <= 62,
    'a byte a second: given up after 60 s',
    slow.lasted,
  )
  bench.same(
    (await slow.world.client.closed)?.code,
    'ERR_KEEPALIVE_TIMEOUT',
    'with ERR_KEEPALIVE_TIMEOUT',
  )
  bench.check(slow.pings >= 1, 'PINGREQ goes on meanwhile', slow.pings)
  const rare = await drip(100, 1, 600)
  bench.check(
    rare.lasted >= 200 && rare.lasted <= 202,
    'with a keep-alive of 100 s: after 200 s',
    rare.lasted,
  )
  await bench.meter.pause()
  const fair = await drip(30, 1100, 600)
  bench.check(
    fair.lasted === 600 && fair.world.client.state === 'connected',
    '1.1 KiB a second, for ten minutes: the link is kept',
    fair.lasted,
  )
  for (const { world } of [slow, rare, fair]) world.client.destroy()
}

// T18

/** Answers ClientHello with plain bytes, ten times the budget of them. */
async function answerPlainly(link: Link): Promise<void> {
  let first: number | undefined
  let mqtt = false
  link.socket.on('data', (bytes: Buffer) => {
    first ??= bytes[0]
    mqtt ||= bytes.includes('MQTT')
  })
  await Promise.race([new Promise((resolve) => link.socket.once('data', resolve)), link.over])
  await link.flood(Buffer.alloc(64 * KiB, 0x20), memoryBudget)
  await link.over
  link.tell('spoken', { first, mqtt })
}

async function staysSecure(bench: Bench, scheme: string): Promise<void> {
  const url = (await bench.server()).replace('mqtt:', `${scheme}:`)
  const codes = new Set<string>()
  const spoken: unknown[] = []
  // The first one is for what is made once.
  for (let number = 1; number <= 11; number++) {
    if (number === 2) await bench.meter.start()
    const client = bench.client(url, { connectTimeout: 3000 })
    codes.add((await bench.failure(client.connect())).code)
    const { first, mqtt } = await bench.told('spoken', number)
    spoken.push(first, mqtt)
    await bench.meter.pause()
    bench.release(client)
  }
  bench.same([...codes], ['ERR_TLS'], 'every attempt ends with ERR_TLS')
  bench.same(
    new Set(spoken).size === 2 && spoken.includes(0x16) && spoken.includes(false),
    true,
    'TLS records only, no byte of MQTT',
  )
}

// T20

async function refusesMixed(bench: Bench): Promise<void> {
  let made = 0
  const before = { location: globalThis.location, WebSocket: globalThis.WebSocket }
  const fake = class {
    constructor() {
      made += 1
    }
  }
  Object.assign(globalThis, {
    location: { protocol: 'https:', hostname: 'page.test' },
    WebSocket: fake,
  })
  const attempt = () =>
    bench.failure(
      new BrowserClient('ws://broker.test/mqtt', {
        reconnect: false,
        connectTimeout: 200,
      }).connect(),
    )
  // The first stack of a script makes the engine remember where its lines begin: that is no attempt's doing.
  await attempt()
  await bench.meter.start()
  const errors: unknown[] = []
  for (let count = 0; count < 10; count++) {
    const { error } = await attempt()
    errors.push(error)
  }
  Object.assign(globalThis, before)
  bench.same(new Set(errors.map((error) => (error as MqttError).code)).size, 1, 'one code for all')
  bench.same(
    (errors[0] as MqttError).code,
    'ERR_INVALID_BROKER_URL',
    'ERR_INVALID_BROKER_URL, early',
  )
  bench.check(/wss/.test((errors[0] as MqttError).message), 'wss is suggested')
  bench.same(made, 0, 'no WebSocket is opened')
}

// T21

const target = '169.254.169.254:80'

async function sendAway(link: Link): Promise<void> {
  await link.packet(1)
  const block = properties(0x1c, text(Array.from({ length: 30 }, () => target).join(' ')))
  if (link.number % 2 === 1) await link.send(connack(0x9c + ((link.number >> 1) % 2), block))
  else await link.send(join(connack(), packet(0xe0, 0x9c + ((link.number >> 1) % 2), block)))
  link.cut()
  await link.finish()
}

async function staysHere(bench: Bench): Promise<void> {
  const url = await bench.server()
  const { host } = new URL(url)
  for (let number = 1; number <= 12; number++) {
    if (number === 3) await bench.meter.start()
    const client = bench.client(url, { username: 'u', password: 'p' })
    await client.connect().catch(() => undefined)
    await bench.closed(client)
    bench.release(client)
  }
  const dialled = new Set(bench.all('dial').map(({ endpoint }) => new URL(endpoint).host))
  bench.same([...dialled], [host], 'no reference is followed by default')
  bench.check(bench.all('serverdisconnect').length === 6, 'it is told as an event')
  await boundsHops(bench)
}

/** Thirty hosts, all on the list, each of which sends on to the next: virtual time. */
async function boundsHops(bench: Bench): Promise<void> {
  const hosts = Array.from({ length: 31 }, (_, at) => `h${at}.test`)
  const asked: string[] = []
  const credentials: ClientOptions['credentials'] = ({ endpoint }) => {
    asked.push(new URL(endpoint).host)
    return { username: 'u', password: 'p' }
  }
  const behave = (host: string) =>
    refusing(0x9c, { serverReference: hosts[hosts.indexOf(host) + 1] ?? 'h0.test' })
  const rig = new Rig(
    { serverReferences: hosts, credentials, reconnect: false },
    { hosts: hosts.slice(0, 1), behave },
  )
  const connecting = bench.failure(rig.client.connect())
  await rig.advance(60_000)
  await connecting
  bench.same(rig.hosts, hosts.slice(0, 4), 'with a list: three hops of thirty')
  bench.same(asked, rig.hosts, 'credentials are asked for anew for every host')
}

// T22

async function redirect(link: Link): Promise<void> {
  await new Promise((resolve) => link.socket.once('data', resolve))
  const port = (link.socket.address() as { readonly port: number }).port
  await link.raw(
    Buffer.from(
      `HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:${port}/inside\r\nContent-Length: 0\r\n\r\n`,
    ),
  )
  await new Promise((resolve) => setTimeout(resolve, 30))
  link.cut()
  await link.finish()
}

async function ignoresRedirect(bench: Bench): Promise<void> {
  const url = await bench.server()
  const codes = new Set<string>()
  for (let number = 1; number <= 11; number++) {
    if (number === 2) await bench.meter.start()
    const client = bench.client(url, { connectTimeout: 2000 })
    codes.add((await bench.failure(client.connect())).code)
    await bench.told('over', number)
    bench.release(client)
  }
  const more = await Promise.race([
    bench.told('over', 12).then(() => true),
    pause(100).then(() => false),
  ])
  bench.same([...codes], ['ERR_CONNECT_FAILED'], 'every attempt fails')
  bench.same(more, false, 'eleven connections came, none followed')
}

// T23

async function hangUp(link: Link): Promise<void> {
  await link.welcome()
  link.cut()
  await link.finish()
}

async function backsOff(bench: Bench): Promise<void> {
  const client = bench.client(await bench.server(), { reconnect: true })
  await client.connect()
  await bench.meter.start()
  await pause(4000)
  const dials = bench.all('dial').length
  bench.check(dials <= 5, 'accepted and dropped at once: at most one dial a second', dials)
  const delays = bench.all('reconnecting').map(({ delay }) => delay)
  bench.check(
    delays.every((delay) => delay >= 1000),
    'no delay below 1 s',
    delays,
  )
  client.destroy()
  await takenOver(bench)
  await diesYoung(bench)
}

/** 0x8E ends it. */
async function takenOver(bench: Bench): Promise<void> {
  const rig = await new Rig().up()
  await rig.goodbye(0x8e)
  await rig.advance(600_000)
  bench.same([rig.client.state, rig.dials.length], ['closed', 1], 'session taken over: it stops')
}

/** Three hundred links that are cut at once, or after up to 29 s: virtual time. What the rig notes is let go of. */
async function diesYoung(bench: Bench): Promise<void> {
  const rig = await new Rig({ reconnect: true }).up()
  const delays: number[] = []
  for (let round = 0; round < 300; round++) {
    await rig.cut()
    await rig.advance(30_000)
    delays.push(...rig.delays)
    rig.events.splice(0)
    rig.dials.splice(0, rig.dials.length - 1)
    if (round % 100 === 20) await bench.meter.pause()
  }
  const late = delays.slice(20)
  const mean = late.reduce((sum, delay) => sum + delay, 0) / late.length
  bench.check(mean > 10_000, '300 links that die young: delays stay long', mean)
  bench.same(rig.client.state === 'closed', false, 'the client is still trying')
  rig.client.destroy()
}

// T26

const challenge = (): Buffer =>
  packet(0xf0, 0x18, properties(0x15, text('toy'), 0x16, text(Buffer.alloc(60_000))))

/** 160 rounds; or CONNACK with another method, or with none. */
async function askOnAndOn(link: Link): Promise<void> {
  await link.packet(1)
  const kind = link.number % 4
  const method = properties(0x15, text(kind === 0 ? 'other' : 'toy'))
  if (kind === 3) await link.send(connack())
  if (kind === 0 || kind === 2) await link.send(connack(0, method))
  if (kind === 2) await link.packet(15)
  for (let round = 0; kind !== 3 && kind !== 0 && round < 160; round++)
    if (!(await link.send(challenge()))) break
  await link.finish()
}

async function boundsRounds(bench: Bench): Promise<void> {
  const url = await bench.server()
  let rounds = 0
  const auth = { method: 'toy', start: () => 'hello', continue: () => `${++rounds}` }
  const seen: (number | null)[][] = []
  // The first four are for what is made once.
  for (let number = 1; number <= 8; number++) {
    if (number === 5) await bench.meter.start()
    rounds = 0
    const client = bench.client(url, { auth, connectTimeout: 3000 })
    const { code } = await bench.failure(client.connect())
    if (code === 'none') bench.failure(client.reauthenticate())
    await bench.closed(client)
    const { disconnect } = await bench.told('over', number)
    await bench.meter.pause()
    seen.push([(disconnect as number | undefined) ?? null, rounds])
    bench.release(client)
  }
  const [codes, counts] = [0, 1].map((at) => seen.slice(4).map((each) => each[at] ?? null)) as [
    (number | null)[],
    number[],
  ]
  bench.same(
    codes,
    [null, 0x82, 0x82, 0x82],
    'too many rounds on an open link, another method, none: DISCONNECT 0x82',
  )
  // The answer to the last one may be overtaken by the end.
  bench.check(
    Math.max(...counts) <= 16 && Math.min(...counts.slice(0, 2)) >= 15,
    'at most 16 rounds',
    counts,
  )
}

/** CONNACK, and the flood behind it, while the client still judges the server's last word. */
async function pressOn(link: Link): Promise<void> {
  await link.packet(1)
  await link.send(connack(0, properties(0x15, text('toy'))))
  await link.flood(publish({ payload: Buffer.alloc(64 * KiB) }), 10 * memoryBudget)
  await link.finish()
}

async function boundsWhatWaits(bench: Bench): Promise<void> {
  const url = await bench.server()
  await bench.meter.start()
  const auth = {
    method: 'toy',
    start: () => 'hello',
    continue: () => 'x',
    success: () => pause(2000),
  }
  const client = bench.client(url, { auth, connectTimeout: 8000 })
  const connecting = client.connect()
  await pause(1000)
  await bench.meter.pause()
  bench.same(client.stats().received, 0, 'nothing behind CONNACK is handled before the verdict')
  await connecting
  await bench.until(() => client.stats().received > 1000, 'what waited')
  bench.same(client.state, 'connected', 'the rest waits on the other side, and is read afterwards')
}

// T27

async function pretend(link: Link): Promise<void> {
  await link.welcome([0], true)
  await link.finish()
}

async function refusesSession(bench: Bench): Promise<void> {
  const url = await bench.server()
  const codes: unknown[] = []
  for (let number = 1; number <= 11; number++) {
    if (number === 2) await bench.meter.start()
    const client = bench.client(url)
    await client.connect().catch(() => undefined)
    const { disconnect } = await bench.told('over', number)
    codes.push(disconnect)
    bench.release(client)
  }
  bench.same(codes, new Array(11).fill(0x82), 'every time: DISCONNECT 0x82')
}

// T28

async function hurry(link: Link): Promise<void> {
  await link.welcome(properties(0x13, 0, 1, 0x11, 0xff, 0xff, 0xff, 0xff))
  await link.go()
  link.tell('counted')
  await link.finish()
}

async function keepsPace(bench: Bench): Promise<void> {
  const client = await bench.connected({ keepAlive: 10 })
  await pause(4500)
  bench.go()
  const { pings } = await bench.told('counted')
  const times = pings as number[]
  const gaps = times.slice(1).map((at, index) => at - (times[index] as number))
  bench.check(
    times.length >= 4 && gaps.every((gap) => gap < 1300),
    'server keep-alive 1 s instead of 10 s: PINGREQ every second',
    gaps,
  )
  bench.check(
    bench.log.some((line) => /keep-alive/i.test(line)),
    'it is logged',
  )
  bench.same(
    client.negotiated?.sessionExpiryInterval,
    0xffff_ffff,
    'an expiry of 4,294,967,295 is for ever, and not more',
  )
  bench.same(client.state, 'connected', 'the link is kept')
}

export const links: readonly Scenario[] = [
  {
    row: 'T05',
    variant: 'handshake',
    idle: true,
    limit: 'connectTimeout 10 s (here 0.5 s)',
    fed: '11 servers that say nothing, or a byte at a time',
    budget: MiB,
    peer: dawdle,
    run: givesUp,
  },
  {
    row: 'T05',
    variant: 'drip',
    limit: 'max(2 × keep-alive, 60 s), or 1 KiB/s',
    fed: 'packets of 1 MiB for 600 s, a byte or 1.1 KiB a second (virtual time)',
    budget: 3 * MiB,
    run: expectsProgress,
  },
  {
    row: 'T18',
    variant: 'plain, TLS',
    limit: 'TLS or nothing',
    fed: '11 × 32 MiB of plain bytes to a TLS client',
    budget: MiB,
    peer: answerPlainly,
    run: (bench) => staysSecure(bench, 'mqtts'),
  },
  {
    row: 'T18',
    variant: 'plain, wss',
    limit: 'TLS or nothing',
    fed: '11 × 32 MiB of plain bytes to a wss client',
    budget: MiB,
    peer: answerPlainly,
    run: (bench) => staysSecure(bench, 'wss'),
  },
  {
    row: 'T20',
    variant: 'page',
    limit: 'no ws: from an https: page',
    fed: '10 attempts',
    budget: smallest,
    run: refusesMixed,
  },
  {
    row: 'T21',
    variant: 'references',
    limit: 'references are not followed; with a list, 3 hops',
    fed: '12 goodbyes with 30 references each, then a chain of 30 hops',
    budget: MiB,
    peer: sendAway,
    run: staysHere,
  },
  {
    row: 'T22',
    variant: 'redirect',
    limit: 'redirects are not followed',
    fed: '11 handshakes answered by 302',
    budget: MiB,
    scheme: 'ws',
    peer: redirect,
    run: ignoresRedirect,
  },
  {
    row: 'T23',
    variant: 'young',
    idle: true,
    limit: 'stability period 30 s, delays of 1 s to 30 s',
    fed: '4 s of links that are dropped at once, and 300 more (virtual time)',
    budget: 2 * MiB,
    peer: hangUp,
    run: backsOff,
  },
  {
    row: 'T26',
    variant: 'rounds',
    limit: '16 rounds; the method must match',
    fed: '160 AUTH of 60 KB, before CONNACK and after; CONNACK with another method, with none',
    budget: MiB,
    peer: askOnAndOn,
    run: boundsRounds,
  },
  {
    row: 'T26',
    variant: 'impatient',
    limit: 'what waits for the end of authentication is in the memoryBudget',
    fed: '320 MiB behind a CONNACK that is still to be judged',
    budget: memoryBudget + MiB,
    peer: pressOn,
    run: boundsWhatWaits,
  },
  {
    row: 'T27',
    variant: 'session',
    limit: 'no session that we did not ask for',
    fed: '11 CONNACKs with Session Present 1',
    budget: MiB,
    peer: pretend,
    run: refusesSession,
  },
  {
    row: 'T28',
    idle: true,
    variant: 'keep-alive',
    limit: 'server keep-alive 1 s is accepted and logged',
    fed: 'Server Keep Alive 1, expiry 4,294,967,295, a tenth of what was asked',
    budget: smallest,
    peer: hurry,
    run: keepsPace,
  },
]
