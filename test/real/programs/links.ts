/** Connections that are lost, taken over, or refused; links that are slow, cut, or dead without a word. */
import { createHash, randomFillSync } from 'node:crypto'
import mqtt from 'mqtt'
import { Client, type ClientOptions, constant, MqttError } from '../../../src/client/node.js'
import { type Program, sleep, type World, within } from './world.js'

async function restarted(world: World): Promise<void> {
  const [consumer, sender] = [
    await world.connect({ clientId: world.id('consumer'), durable: true }),
    await world.connect({ clientId: world.id('sender'), durable: true }),
  ]
  await consumer.consume(world.topic('load'), { qos: 1 }, world.count())
  const count = world.many(3000)
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1
      await world.send(sender, world.topic('load'), `l${next}`, 1)
      await sleep(5)
    }
  }
  const sending = Promise.all(Array.from({ length: 10 }, worker))
  for (const share of [0.25, 0.6]) {
    await world.until(() => world.tally.sent > count * share, 30_000)
    await world.order('shut down')
    await sleep(200)
    await world.order('live')
  }
  await within(sending, 'every publish', 60_000)
  await world.allArrived()
  world.tally.allowedTwice = count
}

async function takenOver(world: World): Promise<void> {
  const clientId = world.id('same')
  const first = await world.connect({ clientId })
  await first.consume(world.topic('old'), { qos: 1 }, () => undefined)
  const second = await world.connect({ clientId })
  await second.consume(world.topic('new'), { qos: 1 }, world.count())
  const sender = await world.connect()
  for (let index = 0; index < 30; index += 1) {
    await world.send(sender, world.topic('new'), `t${index}`, 1)
    await sleep(100)
  }
  await world.allArrived(6000)
  if (world.tally.connections > 3)
    world.tally.fail(
      `the two took the session from each other: ${world.tally.connections - 1} connections`,
    )
  if (first.end !== 'ERR_SESSION_TAKEN_OVER')
    world.tally.fail(`the first was not told: ${first.end}`)
}

export const links: readonly Program[] = [
  {
    name: 'broker restarted',
    title:
      '3,000 messages at QoS 1 through two restarts of the broker: every publish settles, what it accepted arrives',
    setup: 'durable',
    run: restarted,
  },
  {
    name: 'takeover',
    title: 'a second client takes the session: it keeps it, and the first is told',
    run: takenOver,
  },
]

/** Somebody else's client, directly at the broker: what it gets is what the broker got. */
async function witness(
  world: World,
  filter: string,
  handle: (payload: Uint8Array) => void,
): Promise<() => void> {
  const client = await mqtt.connectAsync(world.assignment.directUrl, { protocolVersion: 5 })
  client.on('message', (_topic, payload) => handle(payload))
  await client.subscribeAsync(filter, { qos: 2 })
  return () => void client.end(true)
}

function client(world: World, options: ClientOptions): Client {
  const { tally, assignment } = world
  const made = new Client(assignment.url, options)
  made.on('connect', () => {
    tally.connections += 1
  })
  made.on('disconnect', ({ cause }) => {
    if (cause === undefined) return
    const what = `${cause.code} (${cause.message})`
    if (cause.code === 'ERR_CONNECTION_LOST' || cause.code === 'ERR_SERVER_DISCONNECT')
      tally.endedByPeerBecause(what)
    else tally.endedByUsBecause(what)
  })
  return made
}

async function deadLink(world: World): Promise<void> {
  const [keepAlive, pingTimeout] = [2, 1]
  const device = client(world, { keepAlive })
  await device.connect()
  await sleep(300)
  world.tally.allowEnds('ERR_KEEPALIVE_TIMEOUT')
  let found = 0
  let why = ''
  device.on('disconnect', ({ cause }) => {
    found ||= performance.now()
    why ||= cause?.code ?? ''
  })
  await world.order('stall')
  const began = performance.now()
  const posting = setInterval(() => device.post(world.topic('telemetry'), 'x'.repeat(100)), 100)
  await world.until(() => found > 0, 20_000)
  clearInterval(posting)
  await world.order('go on')
  const took = found === 0 ? Number.POSITIVE_INFINITY : found - began
  world.tally.measured['ms to find it'] = Math.round(took)
  if (took > (keepAlive + pingTimeout) * 1000 + 700)
    world.tally.fail(`the dead link was found after ${Math.round(took)} ms`)
  if (why !== 'ERR_KEEPALIVE_TIMEOUT') world.tally.fail(`it ended with ${why}`)
  device.destroy()
}

/** Publishes at QoS 1 and 2 while connections die; nothing may be rejected, everything has to arrive. */
async function dyingBroker(world: World, mute: boolean): Promise<void> {
  const times = world.many(50)
  const device = client(world, {
    clientId: world.id('device'),
    cleanStart: false,
    reconnect: { backoff: constant(20) },
  })
  const arrived = new Map<string, number>()
  const leave = await witness(world, world.topic('+'), (payload) => {
    const text = Buffer.from(payload).toString()
    arrived.set(text, (arrived.get(text) ?? 0) + 1)
  })
  await world.order('doom', { after: 200, times, mute })
  await device.connect()
  const texts = Array.from({ length: 20 }, (_, index) => `m${index}`)
  const publishing = texts.map((text, index) =>
    device.publish(world.topic(text), text, { qos: index % 2 === 0 ? 1 : 2 }),
  )
  for (const each of publishing)
    each.catch((error: unknown) =>
      world.tally.fail(`rejected: ${MqttError.is(error) ? error.code : String(error)}`),
    )
  // Something to do on every connection, as there is in a service.
  const more: Promise<unknown>[] = []
  for (let index = 0; (await world.order('doomed')) !== 0 && index < 400; index += 1) {
    const text = `n${index}`
    texts.push(text)
    more.push(
      device
        .publish(world.topic(text), text, { qos: 1 })
        .catch((error: unknown) => world.tally.fail(`rejected: ${String(error)}`)),
    )
    await sleep(100)
  }
  await within(Promise.allSettled([...publishing, ...more]), 'every publish', 60_000)
  for (const text of texts) world.tally.expect(text)
  await world.until(() => texts.every((text) => arrived.has(text)), 10_000)
  for (const text of texts) if (arrived.has(text)) world.tally.arrived(text)
  for (const [text, count] of arrived) {
    if (count > 1 && /^m\d*[13579]$/.test(text))
      world.tally.fail(`${text} at QoS 2 arrived ${count} times`)
  }
  await device.disconnect()
  leave()
}

async function largeThroughCuts(world: World): Promise<void> {
  const [size, every, times] = [world.many(20_000_000), 5000 * world.assignment.scale, 6]
  const device = client(world, {
    clientId: world.id('device'),
    cleanStart: false,
    reconnect: { backoff: constant(50) },
  })
  const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  const leave = await witness(world, world.topic('upload'), (payload) =>
    world.tally.arrived(sumOf(payload)),
  )
  await device.connect()
  // A connection carries three quarters of it.
  await world.order('shape', { up: Math.round((size * 0.75 * 1000) / every) })
  const cutting = (async () => {
    for (let cut = 0; cut < times; cut += 1) {
      await sleep(every)
      await world.order('cut links')
    }
  })()
  const bytes = randomFillSync(new Uint8Array(size))
  world.tally.expect(sumOf(bytes))
  const publishing = device.publish(world.topic('upload'), bytes, { qos: 2 })
  await within(publishing, `${size} bytes at QoS 2`, every * (times + 6) + 30_000)
  await cutting
  await world.allArrived(15_000)
  await device.disconnect()
  leave()
}

export const badLinks: readonly Program[] = [
  {
    name: 'dead link',
    title: 'a dead link under `post` every 100 ms is found within keepAlive + pingTimeout',
    run: deadLink,
  },
  {
    name: 'dying broker',
    title: 'connections that die 200 ms after CONNACK, 50 times: nothing is rejected',
    setup: 'plain',
    run: (world) => dyingBroker(world, false),
  },
  {
    name: 'dying broker, silent',
    title: 'the same, where the broker says nothing after CONNACK',
    setup: 'plain',
    bare: true,
    run: (world) => dyingBroker(world, true),
  },
  {
    name: 'large through cuts',
    title: '20 MB at QoS 2 over a link that is cut every 5 s, 6 times, before it is through',
    setup: 'plain',
    run: largeThroughCuts,
  },
]
