/**
 * Attacks through the application: answers that go where they should not, messages that break their handler (T24, T25).
 */
import type { MqttError } from '../../../../src/errors.js'
import type { Bench } from '../bench.js'
import { properties, publish, text } from '../bytes.js'
import type { Link } from '../link.js'
import { MiB, type Scenario } from '../scenario.js'

// T24

const requests = 10_000
const elsewhere = [
  '$SYS/broker/shutdown',
  'tenant-2/replies/a',
  'tenant-1/repliesX',
  'tenant-1',
  '/tenant-1/replies/a',
  'x'.repeat(60_000),
]

async function misdirect(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  await link.go()
  for (let number = 0; number < requests; number++) {
    const responseTopic = elsewhere[number % (number < 600 ? 6 : 5)] as string
    await link.send(
      publish({
        topic: 'svc/echo',
        properties: properties(0x08, text(responseTopic), 0x09, text('x')),
        payload: 'p',
      }),
    )
  }
  await link.send(
    publish({
      topic: 'svc/echo',
      properties: properties(0x08, text('tenant-1/replies/a')),
      payload: 'p',
    }),
  )
  await link.packet(3)
  link.tell('done')
}

async function answersOnlyWhereAllowed(bench: Bench): Promise<void> {
  const client = bench.client(await bench.server())
  await client.connect()
  let handled = 0
  // Room for all, so that none is dropped before it is judged.
  const options = { allow: 'tenant-1/replies', buffer: 20_000, bufferBytes: 64 * MiB }
  const responder = await client.respond('svc/echo', () => `${++handled}`, options)
  await bench.meter.start()
  bench.go()
  const { counts } = await bench.told('done')
  bench.same(responder.ignored, requests, 'every one of 10,000 is ignored, and counted')
  bench.same(handled, 1, 'the handler runs for the one that is allowed')
  bench.same((counts as number[])[3], 1, 'one answer is published')
}

// T25

const poisoned = 50

async function poison(link: Link): Promise<void> {
  await link.welcome()
  await link.packet(8)
  for (let id = 1; id <= poisoned; id++)
    await link.send(publish({ topic: `r/${id}`, qos: 1, id, retain: true, payload: '{"not json' }))
  await link.send(publish({ topic: 'r/good', qos: 1, id: 1000, payload: '{}' }))
  while (!link.ended && (link.counts[4] as number) < poisoned + 1)
    await new Promise((resolve) => setTimeout(resolve, 5))
  link.tell('done')
}

async function survives(bench: Bench): Promise<void> {
  const client = await bench.connected()
  const calls = new Map<string, number>()
  await client.listen(
    'r/#',
    (message) => {
      calls.set(message.topic, (calls.get(message.topic) ?? 0) + 1)
      message.json()
    },
    { qos: 1, concurrency: poisoned },
  )
  const { counts, refusals } = await bench.told('done')
  const failing = [...calls].filter(([topic]) => topic !== 'r/good').map(([, count]) => count)
  bench.same([...new Set(failing)], [6], 'each of 50 is tried once, and 5 times more')
  bench.same(
    [(counts as number[])[4], refusals],
    [poisoned + 1, poisoned],
    'then refused: PUBACK 0x80',
  )
  bench.same(calls.get('r/good'), 1, 'what comes behind is handled')
  const errors = bench.all('error').map(({ error }) => error as MqttError)
  bench.same(errors.length, poisoned, 'every failure is told')
  bench.check(
    bench.heard.filter(
      ({ type, event }) =>
        type === 'error' &&
        JSON.stringify([event, (event as { error: Error }).error.message]).includes('r/'),
    ).length === poisoned,
    'with its topic',
    errors[0]?.message,
  )
  bench.same(client.state, 'connected', 'the link is kept')
}

export const application: readonly Scenario[] = [
  {
    row: 'T24',
    variant: 'replies',
    limit: 'answers only below an allowed prefix',
    fed: '10,000 requests with response topics elsewhere',
    budget: 16 * MiB,
    peer: misdirect,
    run: answersOnlyWhereAllowed,
  },
  {
    row: 'T25',
    variant: 'handler',
    idle: true,
    limit: '5 retries, then refused',
    fed: '50 retained messages that break their handler',
    // Ten times as many hold 200 KiB more: most of it is code of failures and reports, which runs for the first time here.
    budget: 2 * MiB,
    peer: poison,
    run: survives,
  },
]
