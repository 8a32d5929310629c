/** A bare framer and session in any state of the corpus: no client, no clock, no transport. */
import { readControl, sizeLimit } from '../../../../src/client/connection/control.js'
import type { Action } from '../../../../src/client/session/actions.js'
import { version5Code } from '../../../../src/client/session/refusal.js'
import { Session } from '../../../../src/client/session/session.js'
import { AUTH, CONNACK, PUBACK, PUBCOMP, PUBLISH, PUBREC } from '../../../../src/wire/constants.js'
import { WireError } from '../../../../src/wire/error.js'
import { Framer } from '../../../../src/wire/framer.js'
import type { ServerPacket } from '../../../../src/wire/packets.js'
import { PublishView } from '../../../../src/wire/publish.js'
import { topicRecord } from '../../../../src/wire/topic-table.js'
import type { Bytes } from '../bytes.js'
import { counts, limits, type State } from '../states.js'
import { script } from './enter.js'
import { bytewise, pieces, someCuts } from './jobs.js'
import { quietly } from './quietly.js'
import { disagreement, finding, type Job, type Observed } from './verdict.js'

const ackNames: Readonly<Record<number, string>> = {
  4: 'puback',
  5: 'pubrec',
  6: 'pubrel',
  7: 'pubcomp',
}
const digits = (byte: number): string => byte.toString(16).padStart(2, '0')

export class Core {
  readonly #version: 4 | 5
  readonly #state: State
  readonly #session: Session
  readonly #framer: Framer
  readonly #view = new PublishView()
  #settles: boolean
  #said: string[] = []
  #over = false
  #cause: number | undefined

  constructor(version: 4 | 5, state: State) {
    this.#version = version
    this.#state = state
    this.#settles = state.settles
    const { receiveMaximum, maximumPacketSize } = limits
    const ownsSession = !state.cleanStart
    this.#session = new Session({
      receiveMaximum,
      receiveMaximumExceeded: 'disconnect',
      pingTimeout: 10_000,
      maximumInflight: 65_535,
      ownsSession,
    })
    this.#framer = new Framer({
      from: 'server',
      protocolVersion: version,
      maximumPacketSize,
      sizeLimit,
    })
    this.#connect()
    this.#enter()
    this.#said = []
  }

  feed(bytes: Uint8Array): void {
    const session = this.#session
    try {
      this.#framer.push(bytes)
      while (session.state !== 'closed' && this.#framer.next()) this.#handleFrame()
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      session.close(error, error.reasonCode)
    }
    this.#drain()
  }

  observe(): Observed {
    return {
      said: this.#said,
      stream: this.#over ? 'over' : 'up',
      cause: this.#cause,
      state: undefined,
    }
  }

  #connect(): void {
    const { clientId, cleanStart, method } = this.#state
    const { receiveMaximum, topicAliasMaximum, maximumPacketSize } = limits
    const announced =
      this.#version === 5
        ? { receiveMaximum, topicAliasMaximum, maximumPacketSize, authenticationMethod: method }
        : {}
    this.#session.connect({
      type: 'connect',
      protocolName: 'MQTT',
      protocolVersion: this.#version,
      cleanStart,
      keepAlive: 0,
      clientId,
      will: undefined,
      username: undefined,
      password: undefined,
      properties: announced,
    })
    this.#drain()
  }

  // The same steps as `enter.ts`, without anybody who could wait.
  #enter(): void {
    const { name, method, handshake } = this.#state
    const { sendWindow } = this.#session
    const lines = script(this.#version, method !== undefined)
    const say = (bytes: Bytes): void => this.feed(Uint8Array.from(bytes))
    if (handshake) {
      if (method !== undefined) say(lines.challenge)
      return
    }
    say(lines.connack)
    sendWindow.request('subscribe', 1)
    say(lines.granted)
    if (name === 'busy') {
      sendWindow.publish(1)
      sendWindow.request('subscribe', 2)
      sendWindow.request('unsubscribe', 2)
      say(lines.messages)
    } else if (name === 'received') say(lines.message)
    else if (name === 'sent' || name === 'released') sendWindow.publish(2)
    else if (name === 'reauthenticating') this.#session.authExchange.authenticate(0x19, undefined)
    else if (name === 'disconnecting') this.#session.disconnect(0, {})
    if (name === 'released') say(lines.pubrec)
    this.#drain()
    if (name === 'disconnecting') this.#over = true
  }

  #handleFrame(): void {
    const { bytes, start, body, end } = this.#framer
    const session = this.#session
    const type = (bytes[start] as number) >> 4
    if (type === PUBLISH) return this.#handlePublish(bytes, start, body, end)
    const packet = readControl(bytes, start, body, end, this.#version)
    if (type !== CONNACK && type !== AUTH && !session.expectConnected()) return
    if ('properties' in packet && (packet.properties.userProperties?.length ?? 0) > counts.pairs)
      return session.fail(0x97)
    this.#handlePacket(packet)
  }

  #handlePacket(packet: ServerPacket): void {
    const { receiveWindow, sendWindow } = this.#session
    if (packet.type === 'puback') sendWindow.handleAck(PUBACK, packet.packetId, 0)
    else if (packet.type === 'pubrec')
      sendWindow.handleAck(PUBREC, packet.packetId, packet.reasonCode)
    else if (packet.type === 'pubcomp') sendWindow.handleAck(PUBCOMP, packet.packetId, 0)
    else if (packet.type === 'pubrel') receiveWindow.handlePubrel(packet.packetId)
    else this.#session.handlePacket(packet, 0)
  }

  #handlePublish(bytes: Uint8Array, start: number, body: number, end: number): void {
    const view = this.#view
    const session = this.#session
    view.read(bytes, start, body, end, this.#version, 'server')
    if (!session.expectConnected()) return
    if (
      view.userPropertyCount > counts.pairs ||
      view.subscriptionIdentifierCount > counts.identifiers
    )
      return session.fail(0x97)
    if (view.topicAlias > 0 && !this.#resolve(view)) return
    if (view.qos === 0) return
    const ticket = session.receiveWindow.handlePublish(view.packetId, view.qos, view.dup)
    // Messages of a session that nobody reads yet are kept.
    const kept = session.negotiated?.sessionPresent === true
    if (ticket >= 0 && this.#settles && !kept) session.receiveWindow.settle(ticket, 0)
  }

  #resolve({ topicAlias, topicStart, topicEnd }: PublishView): boolean {
    const { aliases } = this.#session
    const found = aliases.resolve(
      topicAlias,
      topicStart === topicEnd ? undefined : topicRecord('topic'),
      Number.POSITIVE_INFINITY,
    )
    if (typeof found === 'number') this.#session.fail(found)
    return this.#session.state === 'connected'
  }

  #drain(): void {
    const session = this.#session
    for (
      let action = session.actions.shift();
      action !== undefined;
      action = session.actions.shift()
    )
      this.#handleAction(action)
    const { acks } = session
    for (; acks.length > 0; ) {
      const ack = acks.entries[acks.head++] as number
      // What is queued when a link ends stays behind.
      if (!this.#over)
        this.#said.push(
          `${ackNames[ack >>> 24]} ${ack & 0xffff} ${digits(this.#version === 5 ? (ack >>> 16) & 0xff : 0)}`,
        )
    }
  }

  #handleAction(action: Action): void {
    if (action.type === 'close') this.#end(action.error.reasonCode, action.reasonCode)
    else if (action.type === 'refused') {
      const { reasonCode } = action.connack
      this.#end(this.#version === 4 ? version5Code(reasonCode) : reasonCode, undefined)
    } else if (action.type === 'server-disconnect') this.#end(action.packet.reasonCode, undefined)
    else if (action.type === 'auth') {
      if (action.packet.reasonCode !== 0x18) return
      this.#session.authExchange.authenticate(0x18, undefined)
    } else if (action.type === 'send' && action.packet.type === 'auth')
      this.#said.push(`auth ${digits(action.packet.reasonCode)}`)
  }

  #end(cause: number | undefined, announced: number | undefined): void {
    this.#over = true
    this.#cause = cause
    if (announced !== undefined) this.#said.push(`disconnect ${digits(announced)}`)
  }
}

/** Cut at every place, up to this length. */
const short = 40
/** Byte by byte in every state up to this length, above it in one: what is so long is a matter of the framer alone. */
const long = 5000

function runOne(job: Job, feed: (core: Core) => void): string | undefined {
  const core = new Core(job.sequence.version, job.state)
  try {
    feed(core)
  } catch (error) {
    return finding('core', job, core.observe(), `it threw: ${error}`)
  }
  const observed = core.observe()
  const wrong = disagreement(job.expected, observed)
  return wrong === undefined ? undefined : finding('core', job, observed, wrong)
}

const cutAt = (job: Job, cuts: readonly number[]): string | undefined =>
  runOne({ ...job, cuts }, (core) => {
    for (const piece of pieces(job.sequence.bytes, cuts)) core.feed(piece)
  })

/** Every byte in an array of its own, which is gone when the next one comes. */
const byBytes = (job: Job): string | undefined =>
  runOne({ ...job, cuts: bytewise(Math.min(job.sequence.bytes.length, 20)) }, (core) => {
    const one = new Uint8Array(1)
    for (const byte of job.sequence.bytes) {
      one[0] = byte
      core.feed(one)
    }
  })

/** What is wrong with a job, in whichever way it is run. */
function check(job: Job): string | undefined {
  const { sequence, state } = job
  const { length } = sequence.bytes
  const ways =
    length <= short
      ? bytewise(length).map((at) => [at])
      : [someCuts(`${sequence.name} ${state.name}`, length)]
  for (const cuts of [[], ...ways]) {
    const wrong = cutAt(job, cuts)
    if (wrong !== undefined) return wrong
  }
  return length <= long || state.name === 'idle' ? byBytes(job) : undefined
}

/** Runs all; gives what was not as expected, one finding a job. */
export const runCore = (jobs: readonly Job[]): Promise<string[]> =>
  quietly(() => jobs.flatMap((job) => check(job) ?? []))
