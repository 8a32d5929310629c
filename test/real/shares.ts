/**
 * What a broker does with the messages of a member that leaves its group: measured with one that leaves in each of the ways, and one that stays.
 *
 * The one that leaves has a full window in hand, unacknowledged; what is its share besides, the broker has. Nothing here is a matter of time but the end: a
 * message that did not come for a while does not come.
 */
import {
  type Client,
  connect,
  type Message,
  type SharedSubscription,
  subscribeShared,
} from '../../src/client/node.js'
import { pause } from '../support/pausing.js'
import type { Broker } from './brokers.js'
import { within } from './waiting.js'

/** How it leaves: with `drain()` and then `disconnect()`; by the end of its session; or cut, with a session that lives on, to which it comes back. */
export const ways = ['drains', 'ends', 'is cut'] as const
export type Way = (typeof ways)[number]

/** Who gets a message; `late`: some come to nobody until another member joins. */
export type Whose = 'itself' | 'others' | 'both' | 'late' | 'nobody' | 'not all'

/** Whose they are: those that it had in hand, its share besides, and what is published once it is gone. Undefined where there were none. */
export interface Fate {
  readonly inHand: Whose | undefined
  readonly waiting: Whose | undefined
  readonly later: Whose | undefined
}

export type Fates = Readonly<Record<Way, Fate>>

const window = 8
const published = 60
/** Milliseconds without a message, after which none is waited for. */
const calm = 300

interface Member {
  readonly client: Client
  readonly jobs: SharedSubscription
  /** What it was given. */
  readonly texts: Set<string>
  /** What it was given and has not acknowledged. */
  readonly inHand: Message[]
  work(): void
}

interface Group {
  readonly url: string
  readonly topic: string
  readonly name: string
  lastAt: number
}

async function member(group: Group, options: object, works = true): Promise<Member> {
  const client = await connect(group.url, {
    reconnect: false,
    sessionExpiryInterval: 0,
    ...options,
  })
  const jobs = await subscribeShared(client, group.name, group.topic, {
    qos: 1,
    ack: 'manual',
    quiet: calm,
  })
  const texts = new Set<string>()
  const inHand: Message[] = []
  let working = works
  const loop = async (): Promise<void> => {
    for await (const message of jobs) {
      group.lastAt = performance.now()
      texts.add(message.text())
      if (working) message.ack()
      else inHand.push(message)
    }
  }
  loop().catch(() => undefined)
  const work = (): void => {
    working = true
    for (const message of inHand.splice(0)) message.ack()
  }
  return { client, jobs, texts, inHand, work }
}

async function quiet(group: Group): Promise<void> {
  const since = performance.now()
  while (performance.now() - Math.max(since, group.lastAt) < calm) await pause(10)
}

async function send(sender: Client, topic: string, texts: readonly string[]): Promise<void> {
  await within(
    Promise.all(texts.map((text) => sender.publish(topic, text, { qos: 1 }))),
    'the receipts',
  )
}

/** `both`: each message one of them, or both. */
function whose(
  texts: readonly string[],
  itself: ReadonlySet<string>,
  others: ReadonlySet<string>,
  next: ReadonlySet<string>,
): Whose | undefined {
  if (texts.length === 0) return undefined
  const missing = texts.filter((text) => !itself.has(text) && !others.has(text))
  const lost = missing.filter((text) => !next.has(text))
  if (lost.length > 0) return lost.length === texts.length ? 'nobody' : 'not all'
  if (missing.length > 0) return 'late'
  const given = texts.filter((text) => others.has(text)).length
  if (given === 0) return 'itself'
  return given === texts.length ? 'others' : 'both'
}

export async function leaving(broker: Broker, way: Way): Promise<Fate> {
  const group: Group = {
    url: broker.urls.TCP as string,
    topic: `jobs/${way}`,
    name: way.replace(' ', '-'),
    lastAt: 0,
  }
  const lasting = way === 'is cut' ? { cleanStart: false, sessionExpiryInterval: 600 } : {}
  const clientId = `goes-${group.name}`
  const goes = await member(group, { clientId, receiveMaximum: window, ...lasting }, false)
  const stays = await member(group, {})
  const sender = await connect(group.url)
  const texts = Array.from({ length: published }, (_, index) => `job ${index}`)
  await send(sender, group.topic, texts)
  await quiet(group)
  const inHand = goes.inHand.map((message) => message.text())
  const waiting = texts.filter((text) => !stays.texts.has(text) && !goes.texts.has(text))
  let itself = goes.texts
  if (way === 'drains') {
    const drained = goes.jobs.drain()
    goes.work()
    await within(drained, 'drained')
    await goes.client.disconnect()
  } else {
    goes.client.destroy()
    itself = new Set()
  }
  await quiet(group)
  const later = Array.from({ length: 20 }, (_, index) => `later ${index}`)
  await send(sender, group.topic, later)
  await quiet(group)
  const back = way === 'is cut' ? await member(group, { clientId, ...lasting }) : undefined
  await quiet(group)
  const own = back?.texts ?? itself
  const next = await member(group, {})
  await quiet(group)
  for (const { client } of [goes, stays, next, ...(back === undefined ? [] : [back])])
    client.destroy()
  await sender.disconnect()
  return {
    inHand: whose(inHand, own, stays.texts, next.texts),
    waiting: whose(waiting, own, stays.texts, next.texts),
    later: whose(later, own, stays.texts, next.texts),
  }
}
