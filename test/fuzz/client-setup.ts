/**
 * The first bytes of a `client` input: the options of the client, and what the peer and the application are like.
 *
 * Small limits on purpose: what is bounded must be met. Every byte gives valid options; byte 0 gives the defaults and an answering peer.
 */
import type { ClientOptions, Credentials } from '../../src/client/api/index.js'
import type { Pairs } from './build.js'
import type { Tape } from './tape.js'

/** Bytes that a setup takes. */
export const setupLength = 8

/** What a run starts from. */
export interface Setup {
  readonly options: ClientOptions
  readonly endpoints: number
  /** The peer answers by itself. */
  readonly answers: boolean
  /** Of the CONNACK that it then gives. */
  readonly connack: Pairs
  /** It says that it holds a session, where the client may have one. */
  readonly keepsSession: boolean
  /** What listeners of the client do when they are called. */
  readonly mischief: Mischief
  readonly seed: number
  /** Through `buffer()` and `read()`, not `chunk()`. */
  readonly buffered: boolean
  /** False where how the bytes are cut may change what is dropped. */
  readonly comparable: boolean
}

/** What a listener does. */
export type Mischief = 'nothing' | 'throw' | 'publish' | 'reconnect' | 'subscribe' | 'disconnect'

const versions = [5, 5, 4, 'auto'] as const
const mischiefs: readonly Mischief[] = ['nothing', 'nothing', 'nothing', 'throw', 'publish', 'reconnect', 'subscribe', 'disconnect']

/** Reads a setup. */
export function readSetup(tape: Tape): Setup {
  const bytes = Uint8Array.from({ length: setupLength }, () => tape.byte())
  const [a = 0, , , , e = 0, f = 0, g = 0, seed = 0] = bytes
  const memoryBudget = e & 1 ? 3000 : 32 * 1024 * 1024
  return {
    options: { ...usualOptions(bytes), ...newOptions(bytes), outbound: outboundOptions(bytes), memoryBudget },
    endpoints: f & 64 ? 2 : 1,
    buffered: (f & 128) !== 0,
    answers: (a & 128) === 0,
    keepsSession: (g & 1) !== 0,
    connack: serverProperties(g),
    mischief: mischiefs[(g >> 5) & 7] as Mischief,
    seed,
    comparable: memoryBudget > 10_000,
  }
}

/** What both versions have. */
function usualOptions([a = 0, b = 0, , d = 0, e = 0, f = 0]: Uint8Array): ClientOptions {
  return {
    clientId: b & 4 || a & 4 ? 'c' : '',
    protocolVersion: versions[a & 3],
    cleanStart: (a & 4) === 0,
    reconnect: a & 8 ? { maxAttempts: 4, stableAfter: 100 } : (a & 16) !== 0,
    firstConnect: a & 32 ? 'wait' : 'reject',
    resubscribe: a & 64 ? 'always' : 'when-lost',
    // What is counted goes the long way: the other half of the runs, which read in place, count nothing.
    stats: (f & 128) === 0,
    keepAlive: [30, 5, 0, 60][(b >> 3) & 3],
    subscriptions: {
      buffer: [1024, 1, 2, 3][(e >> 1) & 3],
      bufferBytes: [4_000_000, 1, 20, 100][(e >> 3) & 3],
      overflow: (['backpressure', 'drop-newest', 'drop-oldest', undefined] as const)[(e >> 5) & 3],
    },
    maximumPacketSize: e & 128 ? 120 : 1_048_576,
    maxFiltersPerSubscribe: f & 4 ? 1 : undefined,
    will: f & 16 ? { topic: 'will', payload: 'gone', qos: 1 } : undefined,
    ...(f & 32 ? { credentials: (context) => credentials(context.attempt) } : {}),
    unclaimedHold: d & 64 ? 100 : 30_000,
    pingTimeout: d & 128 ? 100 : 10_000,
  }
}

/** What 3.1.1 has not. */
function newOptions([a = 0, b = 0, , , , f = 0, , seed = 0]: Uint8Array): ClientOptions {
  if (versions[a & 3] === 4) return {}
  return {
    receiveMaximum: [256, 1, 2, 5][b & 3],
    receiveMaximumExceeded: seed & 1 ? 'disconnect' : 'tolerate',
    sessionExpiryInterval: [300, 0, 5, 4_294_967_295][(b >> 5) & 3],
    topicAliasMaximum: [10, 0, 1, 3][f & 3],
    requestResponseInformation: (f & 8) !== 0,
    ...(b & 128 ? { auth: mechanism } : {}),
  }
}

function outboundOptions([, , c = 0, d = 0]: Uint8Array): ClientOptions['outbound'] {
  return {
    overflow: (['wait', 'reject', 'drop-newest', 'drop-oldest'] as const)[c & 3],
    maxQueuedMessages: [100, 1, 2, 5][(c >> 2) & 3],
    maxQueuedBytes: [1_000_000, 40, 200, 5000][(c >> 4) & 3],
    maxInflight: [65_535, 1, 2, 5][(c >> 6) & 3],
    offline: d & 1 ? { qos0: 'queue', qos1: d & 2 ? 'reject' : 'queue' } : {},
    ...(d & 4 ? { ttl: 50 } : {}),
    ...(d & 8 ? { ackTimeout: 3000 } : {}),
    ...(d & 16 ? { onSessionLost: d & 32 ? 'republish' : 'reject' } : {}),
  }
}

function serverProperties(byte: number): Pairs {
  const all: Pairs[] = [
    [],
    [[33, 1]],
    [
      [33, 2],
      [34, 1],
    ],
    [[39, 30]],
    [
      [36, 1],
      [37, 0],
    ],
    [
      [40, 0],
      [41, 0],
      [42, 0],
    ],
    [
      [34, 3],
      [19, 5],
    ],
    [[17, 1]],
  ]
  const chosen = all[(byte >> 1) & 7] as Pairs
  return byte & 16 ? [...chosen, [26, 'answers']] : chosen
}

/** Three rounds at most; the data is of no importance. */
const mechanism: NonNullable<ClientOptions['auth']> = {
  method: 'm',
  start: () => new Uint8Array(2),
  continue(data) {
    if (data !== undefined && data[0] === 0xff) throw new Error('the mechanism refuses')
    return data?.[0] === 1 ? Promise.resolve(data) : data
  },
  success(data) {
    return data?.[0] === 2 ? Promise.reject(new Error('the mechanism is not satisfied')) : undefined
  },
}

function credentials(attempt: number): Credentials | Promise<Credentials> {
  if (attempt === 2) throw new Error('no credentials this time')
  return attempt % 2 === 0 ? { username: 'u' } : Promise.resolve({ username: 'u', password: 'p', expiresAt: 90_000 })
}
