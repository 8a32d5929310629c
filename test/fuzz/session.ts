/**
 * Fuzz target `session`: a server's bytes against the session behind a connection, over one to four connections.
 *
 * The first bytes choose version, limits, what is in flight and how messages are settled; the rest is cut into as many equal parts as there are
 * connections. What is told and acknowledged must be the same for any chunking. Deterministic and synchronous.
 */
import type { Defect } from '../support/defective.js'
import { connack, type Pairs } from './build.js'
import { checkAlike } from './oracle.js'
import { SessionLink, type Setting, type Told } from './session-link.js'
import { pieces, Tape } from './tape.js'

/** Bytes before the stream. */
export const headerLength = 6

interface Plan {
  readonly setting: Setting
  readonly seed: number
  readonly streams: readonly Uint8Array[]
  /** Properties of the CONNACK that comes before each stream; undefined: the stream has its own. */
  readonly connack: Pairs | undefined
  readonly present: boolean
  readonly cleanStart: boolean
  readonly pauses: readonly number[]
}

const pausings = [[0], [1], [31_000, 11_000], [5000, 0, 61_000]] as const

/** One input. @param defect what is wrong with the client, which has to be found @throws OracleError */
export function run(bytes: Uint8Array, defect?: Defect): void {
  const plan = planned(bytes)
  const whole = play(plan, (stream) => [stream.slice()], defect)
  const cut = play(plan, (stream) => pieces(stream, plan.seed), defect)
  for (const [index, told] of whole.entries()) checkSame(told, cut[index] as Told)
}

function planned(bytes: Uint8Array): Plan {
  const tape = new Tape(bytes)
  const [first = 0, limits = 0, sends = 0, more = 0, server = 0, seed = 0] = Array.from(
    { length: headerLength },
    () => tape.byte(),
  )
  const version = first & 1 ? 4 : 5
  const connections = 1 + ((more >> 6) & 3)
  const rest = tape.rest()
  const size = Math.ceil(rest.length / connections)
  const setting: Setting = {
    version,
    receiveMaximum: [1, 2, 3, 10][limits & 3] as number,
    receiveMaximumExceeded: sends & 128 ? 'disconnect' : 'tolerate',
    maximumInflight: [65_535, 1, 2, 5][(limits >> 2) & 3] as number,
    topicAliasMaximum: [0, 1, 3, 10][(limits >> 4) & 3] as number,
    keepAlive: [30, 0, 5, 60][(limits >> 6) & 3] as number,
    ownsSession: (first & 2) !== 0,
    authenticated: version === 5 && (first & 4) !== 0,
    settling: ((first >> 3) & 3) as 0 | 1 | 2 | 3,
    sending: [sends & 3, (sends >> 2) & 3, (sends >> 4) & 3, (sends >> 6) & 1],
  }
  return {
    setting,
    seed,
    streams: Array.from({ length: connections }, (_, index) =>
      rest.slice(index * size, (index + 1) * size),
    ),
    connack: first & 0x20 ? undefined : serverProperties(server, setting.authenticated),
    present: (first & 0x40) !== 0,
    cleanStart: (first & 0x80) === 0,
    pauses: pausings[more & 3] as readonly number[],
  }
}

function serverProperties(byte: number, authenticated: boolean): Pairs {
  const pairs: [number, ...(number | string)[]][] = []
  if (byte & 1) pairs.push([33, 1 + ((byte >> 1) & 3)])
  if (byte & 8) pairs.push([39, [2, 4, 5, 40][(byte >> 4) & 3] as number])
  if (byte & 64) pairs.push([19, 7])
  if (authenticated) pairs.push([21, 'm'])
  return pairs
}

function play(
  plan: Plan,
  chunks: (stream: Uint8Array) => Iterable<Uint8Array>,
  defect: Defect | undefined,
): readonly Told[] {
  const link = new SessionLink(plan.setting, defect)
  plan.streams.forEach((stream, index) => {
    const present =
      plan.present && (index > 0 || plan.setting.ownsSession) && !(index === 0 && plan.cleanStart)
    link.open(index === 0 ? plan.cleanStart : !plan.present)
    if (plan.connack !== undefined)
      link.receive(connack(plan.setting, present ? 1 : 0, 0, plan.connack))
    for (const chunk of chunks(stream)) link.receive(chunk)
    if (plan.setting.settling !== 1 || index % 2 === 0) link.settleAll()
    for (const pause of plan.pauses) link.pass(pause)
    link.close()
    link.settleAll()
  })
  return link.told
}

function checkSame(whole: Told, cut: Told): void {
  checkAlike([whole.events, whole.end], [cut.events, cut.end], 'session-chunks', 'events')
  // An end takes back what was not sent.
  const common = whole.endedInRead ? cut.acks.slice(0, whole.acks.length) : cut.acks
  checkAlike(whole.acks, common, 'session-chunks', 'acknowledgements')
}
