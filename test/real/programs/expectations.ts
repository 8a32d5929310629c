/**
 * What brokers do that no client makes good: each by name, for the programs that meet it, with what the tap has to have seen for it.
 *
 * A failure that an expectation explains is the broker's; one that the wire does not bear out stays a failure of ours. Pure.
 */

import type { SiteName } from '../sites.js'
import type { Result } from './run.js'

/** A broker's fault, or what it does not offer. */
export interface Expectation {
  readonly broker: SiteName
  readonly programs: readonly string[]
  /** True where the broker need not offer it, and says so or does. */
  readonly absent?: true
  readonly reason: string
  /** The bytes that show it. */
  readonly shows: (result: Result) => boolean
}

const failedOnlyWith =
  (...allowed: readonly RegExp[]) =>
  ({ figures }: Result): boolean =>
    figures.failures.every((failure) => allowed.some((pattern) => pattern.test(failure)))

const lost = /^\d+ of \d+ lost/
const twice = /arrived twice$/
const photographs = ['retained', 'queued'].flatMap((kept) =>
  ['5.0', '3.1.1'].map((version) => `100 × 5 MB, ${kept}, ${version}`),
)
const unfinished = /the whole program: not within/

/** The client has settled everything that the broker sent it, and the broker has not sent all that it owes. */
function owes({ figures, seen }: Result): boolean {
  return (
    seen.leftOpen <= seen.leftToBroker && seen.down < figures.due && figures.delivered >= seen.down
  )
}

/** All that the broker sent was handed over, and it has not sent all. What a kill leaves open is forgotten. */
function neverCame({ figures, seen }: Result): boolean {
  return seen.down < figures.due && figures.delivered >= seen.down
}

/** Nothing is open, and yet nothing more comes to clients whose windows are narrow. */
function stands({ seen, window }: Result): boolean {
  return (
    window !== undefined &&
    window < 100 &&
    seen.down === seen.downSettled &&
    seen.leftOpen <= seen.leftToBroker
  )
}

/** Everything that was acknowledged was handed over: what is lost never came, or was open at the kill and did not come again. */
function neverAcknowledged({ figures, seen }: Result): boolean {
  return figures.delivered + figures.twice >= seen.downSettled
}

function staleRetained(result: Result): boolean {
  const behind = result.seen.odd['sends a retained message behind a live one of its topic'] ?? 0
  return behind > 0 && failedOnlyWith(lost, /not the latest/)(result)
}

export const expectations: readonly Expectation[] = [
  {
    broker: 'aedes',
    programs: ['responder leaves', 'fleet of consumers', '$share, 3.1.1'],
    absent: true,
    reason:
      'aedes offers no shared subscriptions: its CONNACK says so, and on 3.1.1 it takes the filter for an ordinary one',
    shows: ({ seen, program }) => seen.down === 0 || program === '$share, 3.1.1',
  },
  {
    broker: 'aedes',
    programs: ['broker restarted'],
    absent: true,
    reason:
      'aedes keeps everything in memory: what it accepted before its consumer was back is gone',
    shows: (result) => failedOnlyWith(lost)(result) && neverCame(result),
  },
  {
    broker: 'aedes',
    programs: ['overlapping filters'],
    absent: true,
    reason:
      'aedes sends copies for overlapping filters that wait without their identifiers, so that each goes to all of them',
    shows: failedOnlyWith(twice),
  },
  {
    broker: 'aedes',
    programs: ['dying broker', 'dying broker, silent', 'large through cuts'],
    absent: true,
    reason:
      'aedes keeps no session of a client that has not subscribed: QoS 2 that was in flight at a cut is told, with ERR_SESSION_LOST',
    shows: ({ figures }) =>
      figures.failures.every((failure) => /rejected: ERR_SESSION_LOST$/.test(failure)),
  },
  ...(['mosquitto', 'aedes'] as const).map(
    (broker): Expectation => ({
      broker,
      programs: ['durable ingest'],
      reason: `${broker} sends more than the window allows: all of it comes again after the kill`,
      shows: (result) =>
        result.seen.exceeded > 0 &&
        failedOnlyWith(twice)(result) &&
        result.figures.twice <= result.seen.down + result.seen.downDup - result.figures.due,
    }),
  ),
  {
    broker: 'mosquitto',
    programs: ['takeover'],
    reason:
      'mosquitto before 2.1 ends the connection that is taken over without a DISCONNECT: both clients take it for a lost one',
    shows: ({ seen }) => seen.brokerSaid['0x8e'] === undefined && seen.endedByBroker > 0,
  },
  {
    broker: 'mosquitto',
    programs: ['5 MB', '50 MB', ...photographs],
    reason:
      'mosquitto before 2.1 stops behind a large message over WebSocket, leaves PINGREQ unanswered, and goes on when something else comes in',
    shows: (result) =>
      result.transport === 'WebSocket' &&
      failedOnlyWith(lost, unfinished, /ended by us: ERR_KEEPALIVE_TIMEOUT/)(result) &&
      result.seen.up === result.seen.upSettled &&
      result.seen.leftOpen <= result.seen.leftToBroker,
  },
  {
    broker: 'mosquitto',
    programs: ['large backlog'],
    reason:
      'mosquitto before 2.1 stops behind each message of 30 kB over WebSocket, and goes on about a second later',
    shows: (result) =>
      result.transport === 'WebSocket' &&
      failedOnlyWith(lost, unfinished)(result) &&
      result.seen.down - result.seen.downSettled <= 1,
  },
  {
    broker: 'mochi',
    programs: ['broker restarted'],
    reason:
      'mochi remembers a session, but not the packet identifiers of what waits in it: it sends them with identifier 0, or not at all',
    shows: (result) =>
      result.seen.odd['uses packet identifier 0'] !== undefined ||
      (failedOnlyWith(lost, /packet identifier 0/)(result) && neverCame(result)),
  },
  {
    broker: 'mochi',
    programs: [
      'busy listen',
      'retained state',
      '50 devices',
      '50 devices in a loop',
      '50 devices, acknowledged by hand',
      'durable ingest',
      'durable service',
      'narrow QoS 2',
      'overlapping filters',
      'slow handler',
      'responder leaves',
      'fleet of consumers',
      'fan-out',
    ],
    reason:
      'mochi stops sending to a client whose window was full once, although everything it sent was acknowledged',
    shows: (result) =>
      failedOnlyWith(lost, unfinished, /not the latest/, /the answer to one/)(result) &&
      (owes(result) || stands(result)),
  },
  {
    broker: 'mochi',
    programs: ['durable ingest', 'durable service', 'large backlog'],
    reason:
      'mochi sends a session everything at once whatever the window, all of it again on each connection, and under identifiers that are in use',
    shows: (result) =>
      (result.seen.odd['uses an identifier that is in use'] ?? 0) > 0 &&
      result.seen.exceeded > 0 &&
      failedOnlyWith(
        lost,
        twice,
        /ended by us: ERR_PROTOCOL_ERROR 0x82 \(packet identifier in use\)/,
      )(result),
  },
  {
    broker: 'mochi',
    programs: ['retained state'],
    reason:
      'mochi stops sending to a client whose window was full once, although everything it sent was acknowledged',
    shows: (result) =>
      failedOnlyWith(lost, /not the latest/)(result) &&
      result.seen.down === result.seen.downSettled &&
      result.seen.down < result.figures.due,
  },
  {
    broker: 'mochi',
    programs: ['retained state'],
    reason: 'mochi sends a retained message behind a newer live one of its topic',
    shows: staleRetained,
  },
  {
    broker: 'mochi',
    programs: ['fleet of consumers'],
    reason: 'mochi loses jobs of a member that was killed: it sends them to nobody',
    shows: (result) => failedOnlyWith(lost)(result) && neverAcknowledged(result),
  },
  {
    broker: 'aedes',
    programs: ['overlapping filters', 'retained state'],
    reason:
      'aedes no longer finds a message that was acknowledged to it, ends the connection, and forgets what waited for it',
    shows: (result) =>
      failedOnlyWith(lost, twice, /not the latest/)(result) &&
      result.seen.leftOpen - result.seen.leftToBroker <= (result.window ?? 0) &&
      Object.keys(result.figures.endedByPeer).length > 0 &&
      result.seen.endedByBroker > 0,
  },
  {
    broker: 'HiveMQ CE',
    programs: ['retained state'],
    reason: 'HiveMQ CE sends a retained message behind a newer live one of its topic',
    shows: staleRetained,
  },
  {
    broker: 'aedes',
    programs: ['retained state'],
    reason: 'aedes sends a retained message behind a newer live one of its topic',
    shows: staleRetained,
  },
  {
    broker: 'Artemis',
    programs: ['retained state'],
    reason: 'Artemis sends a retained message behind a newer live one of its topic',
    shows: staleRetained,
  },
  {
    broker: 'Artemis',
    programs: ['durable ingest', 'large backlog'],
    reason:
      'Artemis counts what was in flight when a connection ended against the window of the next one, and sends it again only where there is room besides',
    shows: (result) =>
      failedOnlyWith(lost)(result) &&
      neverAcknowledged(result) &&
      result.seen.announced > 0 &&
      result.seen.leftOpen > result.seen.announced / 2,
  },
  {
    broker: 'Artemis',
    programs: ['50 devices in a loop'],
    reason:
      'Artemis stops sending to a client whose window it has exceeded, although everything it sent was acknowledged',
    shows: (result) => result.seen.exceeded > 0 && failedOnlyWith(lost)(result) && owes(result),
  },
  {
    broker: 'Artemis',
    programs: ['responder leaves'],
    reason: 'Artemis loses an answer at QoS 0 that comes right before the DISCONNECT of its sender',
    // Each request and each answer was sent.
    shows: (result) =>
      failedOnlyWith(lost, /the answer to one: not within/)(result) &&
      result.seen.upZero === 2 * result.figures.due &&
      result.seen.downZero === result.seen.upZero - result.figures.lost,
  },
  {
    broker: 'Artemis',
    programs: ['wills'],
    reason:
      'Artemis publishes no will of a client with a session that outlives its connection, also where Will Delay Interval is 0',
    shows: (result) =>
      failedOnlyWith(lost)(result) && result.seen.down === 0 && result.figures.delivered === 0,
  },
  {
    broker: 'Artemis',
    programs: ['fleet of consumers'],
    reason:
      'Artemis gives what a member holds to the others as soon as it unsubscribes: what it acknowledges after that comes twice',
    shows: (result) =>
      failedOnlyWith(twice)(result) &&
      result.figures.twice <= result.seen.down + result.seen.downDup - result.figures.due,
  },
  {
    broker: 'Artemis',
    programs: ['overlapping filters'],
    reason:
      'Artemis sends a copy for each overlapping filter, names all of them in every copy, and now and then refuses an UNSUBSCRIBE with 0x80',
    shows: (result) =>
      failedOnlyWith(twice, lost, /unsubscribe refused: Unspecified error$/)(result) &&
      (result.seen.odd['names several subscriptions in a copy'] ?? 0) >= result.seen.down &&
      (result.figures.lost === 0 ||
        result.figures.failures.some((failure) => failure.includes('unsubscribe refused'))),
  },
]

export type Verdict =
  | { readonly word: 'passes' | 'fails' }
  | { readonly word: 'broker' | 'absent'; readonly reason: string }

export function verdictOf(result: Result): Verdict {
  if (result.figures.failures.length === 0) return { word: 'passes' }
  const found = expectations.find(
    ({ broker, programs, shows }) =>
      broker === result.broker && programs.includes(result.program) && shows(result),
  )
  if (found === undefined) return { word: 'fails' }
  return { word: found.absent === true ? 'absent' : 'broker', reason: found.reason }
}
