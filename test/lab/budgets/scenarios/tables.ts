/**
 * Attacks on tables, and on text: aliases, identifiers, names, patterns, logs, secrets (T09, T11, T14 to T17).
 */
import { inspect } from 'node:util'
import type { Message } from '../../../../src/client/api/index.js'
import type { Bench } from '../bench.js'
import {
  connack,
  join,
  packet,
  pairs,
  properties,
  publish,
  text,
  uint16,
  varint,
} from '../bytes.js'
import { type Link, limitsOf } from '../link.js'
import { MiB, memoryBudget, type Scenario } from '../scenario.js'

const aliasOf = (alias: number): Buffer => properties(0x23, uint16(alias))
const longTopic = (number: number): string =>
  `${String(number).padStart(10, '0')}${'t'.repeat(65_525)}`

// T09

/** The table of aliases, filled with the longest topics ten times over; then one alias more than there are. */
async function defineAgain(link: Link): Promise<void> {
  const connect = await link.welcome()
  link.tell('limits', { maximum: limitsOf(connect).get(0x22) })
  await link.go()
  for (let number = 0; number < 100; number++) {
    await link.send(publish({ topic: longTopic(number), properties: aliasOf((number % 10) + 1) }))
  }
  link.tell('defined')
  await link.go()
  await link.send(publish({ topic: 'b', properties: aliasOf(11) }))
  await link.finish()
}

/** As many aliases as the application allowed, with the longest topics: ten times the budget. */
async function defineAll(link: Link): Promise<void> {
  await link.welcome()
  await link.go()
  for (let number = 1; number <= 5120; number++)
    if (!(await link.send(publish({ topic: longTopic(number), properties: aliasOf(number) }))))
      break
  // The last word comes from the client, if it has one.
  if (!link.ended) link.tell('defined')
  await link.finish()
}

// T11

const unknown = 100_000

async function inventIdentifiers(link: Link): Promise<void> {
  await link.welcome()
  for (let count = 0; count < 2; count++) await link.packet(8)
  await link.go()
  for (let number = 0; number < unknown; number += 100) {
    const some = Array.from({ length: 100 }, (_, at) => {
      const identifiers = Array.from({ length: 10 }, (_each, nth) =>
        join(0x0b, varint(1_000_000 + (number + at) * 10 + nth)),
      )
      return publish({ topic: 'f/1', properties: properties(...identifiers) })
    })
    await link.send(Buffer.concat(some))
  }
  link.tell('done')
}

async function routesByTopic(bench: Bench): Promise<void> {
  const client = bench.client(await bench.server())
  await client.connect()
  const read = [0, 0]
  for (const [index, filter] of ['f/+', 'f/#'].entries()) {
    await client.listen(filter, () => {
      read[index] = (read[index] as number) + 1
    })
  }
  await bench.meter.start()
  bench.go()
  await bench.told('done')
  await bench.until(() => client.stats().received >= unknown, 'every message')
  await bench
    .until(() => read.every((count) => count === unknown), 'the readers')
    .catch(() => undefined)
  bench.same(read, [unknown, unknown], 'each copy is routed by its topic alone')
  const counted = Object.entries(client.stats()).find(
    ([name, value]) => /identifier/i.test(name) && typeof value === 'number' && value >= unknown,
  )
  bench.check(counted !== undefined, 'unknown identifiers are counted')
  bench.same(client.state, 'connected', 'the link is kept')
}

// T14

const poison = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'prototype',
] as const
const json =
  '{"__proto__":{"polluted":1},"a":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}'

async function pollute(link: Link): Promise<void> {
  const block = properties(...poison.map((name) => pairs(21, name, 'polluted')))
  await link.packet(1)
  await link.send(connack(0, block))
  await link.packet(8)
  await link.go()
  for (let count = 0; count < 10; count++)
    await link.send(publish({ topic: '__proto__/constructor', properties: block, payload: json }))
  await link.go()
  await link.send(packet(0xe0, 0x8b, block))
  link.cut()
  await link.finish()
}

async function staysClean(bench: Bench): Promise<void> {
  const [client] = await bench.subscribed({}, {})
  const messages: Message[] = []
  await client.listen('__proto__/#', (message) => void messages.push(message))
  bench.go()
  await bench.until(() => messages.length === 10, 'the messages')
  bench.go()
  await bench.closed(client)
  const arrays = messages.every(
    ({ properties: { userProperties } }) =>
      Array.isArray(userProperties) && userProperties.length === 126,
  )
  bench.check(arrays, 'user properties are pairs, all of them, in order')
  const parsed = messages.map((message) => message.json<{ a: object }>())
  bench.check(
    parsed.every(
      (value) => !Object.hasOwn(value, '__proto__') && !Object.hasOwn(value.a, '__proto__'),
    ),
    'json() leaves __proto__ out',
  )
  bench.same(({} as { polluted?: unknown }).polluted, undefined, 'Object.prototype is as it was')
  bench.check(Object.getPrototypeOf(client.stats().failures) === null, 'maps have no prototype')
  const [goodbye] = bench.all('serverdisconnect')
  bench.same(goodbye?.packet.properties.userProperties?.length, 126, 'DISCONNECT brings pairs too')
}

// T15

const nasty = [
  '/'.repeat(65_535),
  'a/'.repeat(32_767),
  '\\'.repeat(65_535),
  `${'('.repeat(60_000)}a`,
  '%'.repeat(65_535),
  ' '.repeat(65_535),
  'a'.repeat(65_535),
]

/** The longest strings in every place that has one, again and again. */
async function sendPatterns(link: Link): Promise<void> {
  await link.welcome()
  for (let count = 0; count < 3; count++) await link.packet(8)
  await link.go()
  for (let round = 0; round < 10; round++) {
    for (const string of nasty) {
      const block = properties(
        0x03,
        text(string),
        0x08,
        text(string),
        0x26,
        text(string),
        text(string),
      )
      await link.send(publish({ topic: string, properties: block, payload: string }))
    }
    await link.send(
      packet(0xb0, uint16(round + 100), properties(0x1f, text('a'.repeat(65_535))), 0),
    )
    await link.send(
      packet(0x40, uint16(round + 100), 0, properties(0x1f, text(`${'a '.repeat(4000)}!`))),
    )
  }
  link.tell('done')
}

async function isLinear(bench: Bench): Promise<void> {
  const client = bench.client(await bench.server())
  await client.connect()
  for (const filter of ['#', '+/+/+/+/#', `${'+/'.repeat(100)}#`])
    await client.listen(filter, (message) => void message.properties)
  await bench.meter.start()
  const started = performance.now()
  bench.go()
  await bench.told('done')
  await bench.until(() => client.stats().received >= 10 * nasty.length, 'every message')
  const took = performance.now() - started
  bench.check(took < 5000, 'ninety packets of the longest text take less than 5 s', took)
  bench.same(client.state, 'connected', 'the link is kept')
}

// T16

const forged = '\u001b]0;owned\u0007\r\nERROR forged line\u202e\u2066\u009b31m'
const injection = forged.repeat(1300).slice(0, 20_000)
/** Control characters, line breaks, direction marks. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

const refusals = [
  (): Buffer => connack(0x87, properties(0x1f, text(injection), 0x1c, text(injection))),
  (): Buffer =>
    join(connack(), packet(0xe0, 0x8b, properties(0x1f, text(injection), 0x1c, text(injection)))),
  (): Buffer =>
    join(
      connack(0, properties(0x12, text(injection), 0x1f, text(injection), 0x1a, text(injection))),
      publish({ topic: injection }),
    ),
  (): Buffer => join(connack(), packet(0xf0, 0x18, properties(0x15, text(injection)))),
]

async function inject(link: Link): Promise<void> {
  await link.packet(1)
  await link.send((refusals[(link.number - 1) % refusals.length] as () => Buffer)())
  const given = await Promise.race([
    link.packet(8),
    new Promise<undefined>((resolve) => setTimeout(resolve, 200)),
  ])
  if (given !== undefined)
    await link.send(packet(0x90, given.subarray(2, 4), properties(0x1f, text(injection)), 0x87))
  await new Promise((resolve) => setTimeout(resolve, 50))
  link.cut()
  await link.finish()
}

async function escapes(bench: Bench): Promise<void> {
  const url = await bench.server()
  await bench.meter.start()
  const shown: string[] = []
  process.on('warning', (warning) => shown.push(String(warning)))
  for (let number = 1; number <= refusals.length + 1; number++) {
    const client = bench.client(url)
    const failures = [
      await bench.failure(client.connect()),
      await bench.failure(client.subscribe('a', { signal: AbortSignal.timeout(300) })),
    ]
    for (const { error } of failures) {
      if (error instanceof Error)
        shown.push(error.message, String(error), String(error.cause ?? ''))
    }
    await bench.closed(client)
    shown.push(String(await bench.closed(client)))
    bench.release(client)
  }
  shown.push(...bench.log)
  const raw = shown.filter((line) => controls.test(line))
  bench.same(
    raw,
    [],
    `no control character in ${shown.length > 10 ? 'any' : 'the few'} log lines and error messages`,
  )
  const longest = Math.max(...shown.map((line) => line.length))
  bench.check(
    longest <= 600,
    'the client id and the text of a line are each cut at 256 characters',
    shown.find((line) => line.length === longest),
  )
  bench.check(bench.log.length > 0, 'there are log lines')
}

// T17

const canary = 'cAnary-5ecret'
const refusing = [0x86, 0x87, 0x84, 0x97, 0x9c]

/** Refuses, hangs up, and says things that make the client tell about itself. */
async function provoke(link: Link): Promise<void> {
  const connect = await link.packet(1)
  const kind = link.number % 10
  link.tell('connect', { secret: connect?.includes(canary) })
  if (kind < 5) await link.send(connack(refusing[kind] as number))
  else if (kind === 5) await link.send(Buffer.of(0xf0, 0))
  else if (kind === 6) await link.send(connect as Buffer)
  else if (kind === 7) await link.send(join(connack(), Buffer.of(0x30, 0)))
  else if (kind === 8) await link.send(Buffer.alloc(64, 0xff))
  link.cut()
  await link.finish()
}

async function keepsSecrets(bench: Bench): Promise<void> {
  const url = await bench.server()
  // The texts are looked through and let go: kept, they would count as the client's memory.
  const leaks: string[] = []
  let looked = 0
  const look = (...texts: string[]): void => {
    looked += texts.length
    leaks.push(...texts.filter((text) => text.includes(canary)))
  }
  const { write } = process.stderr
  process.stderr.write = ((chunk: string) => {
    look(String(chunk))
    return true
  }) as typeof write
  process.on('warning', (warning) => look(String(warning)))
  let told = 0
  for (let number = 1; number <= 20; number++) {
    // The code of these ways is compiled in the first ten; the second ten are what the attack adds.
    if (number === 11) await bench.meter.start()
    const client = bench.client(url.replace('mqtt://', `mqtt://user:${canary}@`), {
      username: 'user',
      password: canary,
    })
    client.on('packet', (event) => look(inspect(event, { depth: 9 })))
    const { error } = await bench.failure(client.connect())
    look(
      inspect(error, { depth: 9, showHidden: true }),
      inspect(client, { depth: 9, showHidden: true }),
      JSON.stringify(error) ?? '',
    )
    const { secret } = await bench.told('connect', number)
    if (secret === true) told += 1
    bench.release(client)
  }
  process.stderr.write = write
  look(...bench.log, inspect(bench.heard, { depth: 9 }))
  bench.same(told, 20, 'the server got the password, in CONNECT')
  bench.check(
    looked > 50,
    'errors, events, packets, logs and what inspect shows were looked through',
    looked,
  )
  bench.same(leaks.length, 0, 'nobody else did: errors, events, packets, logs, inspect')
}

export const tables: readonly Scenario[] = [
  {
    row: 'T09',
    variant: 'default',
    limit: '10 aliases, none announced',
    fed: '100 definitions of 10 aliases, 64 KiB each, then an alias 11',
    budget: 2 * MiB,
    peer: defineAgain,
    run: async (bench) => {
      const client = await bench.connected()
      const { maximum } = await bench.told('limits')
      bench.same(maximum, undefined, 'CONNECT asks for none')
      bench.go()
      await bench.told('defined')
      await bench.until(() => client.stats().received === 100, 'the definitions')
      await bench.meter.pause()
      bench.go()
      const error = await bench.closed(client)
      const { disconnect } = await bench.told('over')
      bench.same(
        [disconnect, error?.code],
        [0x94, 'ERR_PROTOCOL_ERROR'],
        'alias 11: DISCONNECT 0x94',
      )
    },
  },
  {
    row: 'T09',
    variant: 'bytes',
    limit: 'aliases are counted in the memoryBudget',
    fed: '5,120 aliases of 64 KiB (320 MiB), where 65,535 are allowed',
    budget: memoryBudget + 2 * MiB,
    peer: defineAll,
    run: async (bench) => {
      const client = await bench.connected({ topicAliasMaximum: 65_535 })
      bench.go()
      const first = await Promise.race([bench.told('over'), bench.told('defined')])
      await bench.until(
        () => client.stats().received >= 5000 || client.state !== 'connected',
        'the definitions',
      )
      bench.check(
        [0x94, 0x97].includes(first['disconnect'] as number),
        'over the budget: DISCONNECT 0x94 or 0x97',
        first['disconnect'],
      )
    },
  },
  {
    row: 'T11',
    variant: 'unknown',
    limit: 'only identifiers that we used count',
    fed: '100,000 messages with 1,000,000 identifiers, all different',
    budget: MiB,
    peer: inventIdentifiers,
    run: routesByTopic,
  },
  {
    row: 'T14',
    variant: 'names',
    limit: 'pairs, maps without a prototype, json() without __proto__',
    fed: '12 packets with 1,512 user properties named like members of Object',
    budget: MiB,
    peer: pollute,
    run: staysClean,
  },
  {
    row: 'T15',
    variant: 'patterns',
    limit: 'no regular expression on peer data: linear time',
    fed: '90 packets with 290 strings of up to 65,535 bytes',
    budget: 6 * MiB,
    peer: sendPatterns,
    run: isLinear,
  },
  {
    row: 'T16',
    variant: 'injection',
    limit: 'peer text is escaped, and cut at 256',
    fed: 'strings of 20,000 bytes, all control characters, in CONNACK, DISCONNECT, SUBACK, PUBLISH, AUTH',
    budget: 2 * MiB,
    peer: inject,
    run: escapes,
  },
  {
    row: 'T17',
    variant: 'canary',
    limit: 'no secret outside of CONNECT',
    fed: '10 refusals, breaches and cuts after ten of the same',
    budget: MiB,
    peer: provoke,
    run: keepsSecrets,
  },
]
