/** The options of the client under test, from the setup of a run. */
import type { ClientOptions, Credentials } from '../../src/client/options/index.js'
import type { FrameScanner } from '../../src/wire/frames.js'
import { mannersOf, smallPacket } from './habits.js'
import { canary } from './payloads.js'
import type { Random } from './random.js'
import type { Setup } from './schedule.js'

const encoder = new TextEncoder()

export interface Means {
  readonly log: (line: string) => void
  readonly random: Random
  readonly troubled: () => boolean
  /** Epoch milliseconds. */
  readonly date: () => number
}

/** How long a token is good for: it is renewed a minute earlier. */
const tokenLife = 75_000

let scanner: FrameScanner | false = false

/** Clients that are made from now on find packets with this. */
export function readWith(chosen: FrameScanner): void {
  scanner = chosen
}

// Servers use aliases where they are asked to.
const aliases = ({ habit }: Setup): ClientOptions =>
  mannersOf(habit).includes('stale-aliases') ? { topicAliasMaximum: 10 } : {}
const sizes = ({ habit }: Setup): ClientOptions =>
  mannersOf(habit).includes('ignores-sizes') ? { maximumPacketSize: smallPacket } : {}

const auth = {
  method: 'world',
  start: () => encoder.encode(`${canary} first`),
  continue: () => encoder.encode(`${canary} second`),
}

export function clientOptions(setup: Setup, { log, random, date, troubled }: Means): ClientOptions {
  const {
    clientId,
    cleanStart,
    keepAlive,
    unclaimedHold,
    memoryBudget,
    resubscribe,
    firstConnect,
  } = setup
  const { maxQueuedMessages, maxQueuedBytes, overflow, ackTimeout, ttl, onSessionLost, version } =
    setup
  const queue = { maxQueuedMessages, maxQueuedBytes, overflow, ackTimeout, ttl, onSessionLost }
  const session = {
    sessionExpiryInterval: setup.sessionExpiry,
    receiveMaximum: setup.receiveMaximum,
  }
  return {
    ...{ clientId, cleanStart, keepAlive, unclaimedHold, memoryBudget, resubscribe, firstConnect },
    protocolVersion: version,
    ...(version === 4 ? {} : { ...session, ...aliases(setup) }),
    ...sizes(setup),
    stats: true,
    reconnect: setup.reconnect ? setup.retries : false,
    credentials: setup.tokens ? () => token(random, date(), troubled()) : undefined,
    username: `name-${canary}`,
    password: encoder.encode(`${canary}-password`),
    will: setup.will ? { topic: 'will/subject', payload: 'gone', qos: 1 } : undefined,
    outbound: { ...queue, offline: { qos0: setup.offlineQos0 }, ...setup.outbound },
    auth: setup.auth ? auth : undefined,
    logger: { debug: log, info: log, warn: log, error: log },
    scanner,
    ...setup.more,
  }
}

function token(random: Random, now: number, troubled: boolean): Credentials {
  if (troubled && random.chance(0.2)) throw new Error('no token today')
  return { username: `token-${canary}`, password: `${canary}-${now}`, expiresAt: now + tokenLife }
}

/** The list of endpoints; the canary stands in their user-info. */
export function endpoints(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `mqtt://user:${canary}@broker-${index}:1883`)
}
