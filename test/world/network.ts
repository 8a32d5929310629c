/** Everything between client and broker: dialling, the pipes, the monitor's taps, and the faults that strike them. */
import type { Dial, Transport } from '../../src/transport/transport.js'
import type { WorldClock } from './clock.js'
import { habitOf } from './habits.js'
import { type PacketFault, Pipe } from './pipe.js'
import type { Random } from './random.js'
import type { Fault, FaultKind, Setup } from './schedule.js'

export interface Accepting {
  accept(transport: Transport): void
  restart(keepSessions: boolean): void
}

export interface Watcher {
  connect(): {
    sent(bytes: Uint8Array): void
    arriving(bytes: Uint8Array): void
    end(how: 'closed' | 'destroyed' | 'ended'): void
  }
  readonly assignedId: string
}

/** What the network has to know of a setup. */
export type LinkSetup = Pick<Setup, 'pipe' | 'habit' | 'version' | 'keepAlive' | 'clientId'>

const packetFaults: Readonly<Record<string, PacketFault>> = {
  'drop-packet': 'drop',
  'double-packet': 'twice',
  'delay-packet': 'delay',
}
type Next = 'refuse' | 'hang' | 0x88 | 0x89
const nextDials: Readonly<Record<string, Next>> = {
  'refuse-dial': 'refuse',
  'hang-dial': 'hang',
  'connack-88': 0x88,
  'connack-89': 0x89,
}

export interface NetworkParts {
  readonly clock: WorldClock
  readonly random: Random
  readonly setup: LinkSetup
  readonly monitor: Watcher
  readonly broker: Accepting
  readonly report: (rule: string, detail: string) => void
}

export class Network {
  /** The broker's packets that were lost on the way: the session cannot heal on this link. */
  lossy = false
  /** Told of each link that the client opens, by its number. */
  onOpen: ((number: number) => void) | undefined
  /** Sessions that the broker began anew. */
  begun = 0
  readonly pipes: Pipe[] = []
  #sockets = 0
  #away = 0
  #next: Next | undefined
  #healed = false
  readonly #parts: NetworkParts

  constructor(parts: NetworkParts) {
    this.#parts = parts
  }

  get pipe(): Pipe | undefined {
    return this.pipes.at(-1)
  }

  get healed(): boolean {
    return this.#healed
  }

  /** How the client opens a stream; `alive` says whether its process still runs. */
  dialler(alive: () => boolean): Dial {
    return (_target, { signal }) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const abort = (): void => {
          cancel()
          reject(signal.reason)
        }
        signal.addEventListener('abort', abort, { once: true })
        const way = this.#next
        const cancel =
          way === 'hang'
            ? (): void => undefined
            : this.#parts.clock.setTimer(
                () => {
                  signal.removeEventListener('abort', abort)
                  if (!alive()) return
                  if (way === 'refuse' || this.#away > this.#parts.clock.now())
                    reject(new Error('ECONNREFUSED'))
                  else resolve(this.#open(typeof way === 'number' ? way : undefined))
                },
                this.#parts.setup.pipe.latency,
                'dial',
              )
        this.#next = undefined
      })
  }

  strike({ kind, k = 0 }: Fault): void {
    if (this.#healed) return
    const { pipe } = this
    if (kind === 'reset' || kind.endsWith('-dial') || kind.startsWith('connack')) {
      this.#next = nextDials[kind] ?? this.#next
      pipe?.reset()
    } else if (kind.startsWith('stall')) this.#stall(kind, k)
    else if (kind === 'restart-keep' || kind === 'restart-lose')
      this.#restart(kind === 'restart-keep', k)
    else if (kind === 'takeover') this.#takeOver()
    else if (kind === 'jump') this.#parts.clock.jump(k)
    else if (pipe === undefined) return
    else if (kind === 'end') pipe.finish()
    else if (kind === 'cut-up') pipe.up.cutAfter = k
    else if (kind === 'cut-down') pipe.down.cutAfter = k
    else if (kind === 'server-busy') this.#sayBusy(pipe)
    else if (kind === 'throw-write') pipe.throwing = true
    else this.#loseNext(pipe, packetFaults[kind] as PacketFault, k)
  }

  /** Nothing new goes wrong; a link that lost packets is replaced. */
  heal(): void {
    this.#healed = true
    this.#next = undefined
    this.#away = 0
    const { pipe } = this
    if (pipe === undefined) return
    pipe.throwing = false
    pipe.up.packetFault = undefined
    pipe.down.packetFault = undefined
    pipe.up.cutAfter = Number.POSITIVE_INFINITY
    pipe.down.cutAfter = Number.POSITIVE_INFINITY
    if (this.lossy) pipe.reset()
    // A dead link stays dead where keep-alive has to find out.
    if (this.#parts.setup.keepAlive > 0) return
    pipe.up.resume()
    pipe.down.resume()
  }

  /** The client's process is gone: the broker sees a reset, the client nothing. What was on its way to the broker is lost, or arrives before it. */
  kill(arrives = false): void {
    const { pipe } = this
    this.#sockets = 0
    if (pipe === undefined) return
    pipe.client.abandon(arrives)
    if (!arrives) pipe.reset()
  }

  #open(refusal: number | undefined): Transport {
    this.#sockets += 1
    if (this.#sockets > 1) this.#parts.report('I9', `${this.#sockets} sockets are open`)
    const connection = this.#parts.monitor.connect()
    let held = true
    const pipe: Pipe = new Pipe(this.#parts.clock, this.#parts.random, this.#parts.setup.pipe, {
      sent: (bytes) => connection.sent(bytes),
      arriving: (bytes) => connection.arriving(bytes),
      over: (how) => {
        if (held && this.#sockets > 0) this.#sockets -= 1
        held = false
        connection.end(how)
      },
      answered: (packet) => this.#countSession(packet),
      fault: (what) => this.#parts.report('transport', what),
    })
    pipe.habit = habitOf(this.#parts.setup.habit, {
      clock: this.#parts.clock,
      version: this.#parts.setup.version === 4 ? 4 : 5,
      link: this.pipes.length + 1,
      reset: () => {
        if (!this.#healed) pipe.reset()
      },
      cut: () => pipe.reset(),
    })
    this.pipes.push(pipe)
    if (refusal === undefined) this.#parts.broker.accept(pipe.server)
    else refuse(pipe.server, refusal, this.#parts.setup.version === 4)
    this.onOpen?.(this.pipes.length)
    return pipe.client
  }

  #stall(kind: FaultKind, duration: number): void {
    const { pipe } = this
    if (pipe === undefined) return
    const ways = [
      ...(kind === 'stall-down' ? [] : [pipe.up]),
      ...(kind === 'stall-up' ? [] : [pipe.down]),
    ]
    for (const way of ways) way.stalled = true
    this.#parts.clock.setTimer(() => {
      if (!this.#healed) for (const way of ways) way.resume()
    }, duration || 5000)
  }

  #restart(keep: boolean, away: number): void {
    this.#away = this.#parts.clock.now() + away
    this.pipe?.reset()
    this.#parts.broker.restart(keep)
  }

  // It says nothing but CONNECT, acknowledges nothing, and goes away soon.
  #takeOver(): void {
    const clientId = this.#parts.setup.clientId || this.#parts.monitor.assignedId
    if (clientId === '' || this.#away > this.#parts.clock.now()) return
    const { clock, random, setup, broker } = this.#parts
    const tap = { ...untapped, answered: (packet: Uint8Array) => this.#countSession(packet) }
    const pipe = new Pipe(clock, random, { ...setup.pipe, pieces: 'whole' }, tap)
    broker.accept(pipe.server)
    pipe.client.open(ignoring)
    pipe.client.write(connectOf(clientId, setup.version === 4 ? 4 : 5))
    clock.setTimer(() => pipe.client.destroy(), 200)
  }

  // CONNACK with success and without a session.
  #countSession(packet: Uint8Array): void {
    if (packet[0] === 0x20 && packet[2] === 0 && packet[3] === 0) this.begun += 1
  }

  #loseNext(pipe: Pipe, kind: PacketFault, skip: number): void {
    pipe.down.packetFault = { kind, skip }
    pipe.tampered = true
    this.lossy = true
  }

  #sayBusy(pipe: Pipe): void {
    if (pipe.over) return
    if (this.#parts.setup.version === 5) pipe.server.write(Uint8Array.of(0xe0, 2, 0x89, 0))
    pipe.server.close()
  }
}

const nothing = (): void => undefined
const untapped = { sent: nothing, arriving: nothing, over: nothing, fault: nothing }
const ignoring = {
  buffer: () => new Uint8Array(4096),
  read: nothing,
  chunk: nothing,
  drain: nothing,
  closed: nothing,
}

// CONNECT without Clean Start, of MQTT 3.1.1 or 5.0.
function connectOf(clientId: string, version: 4 | 5): Uint8Array {
  const id = [...clientId].map((character) => character.charCodeAt(0))
  const properties = version === 5 ? [5, 0x11, 0, 0, 1, 44] : []
  const body = [
    0,
    4,
    0x4d,
    0x51,
    0x54,
    0x54,
    version,
    0,
    0,
    60,
    ...properties,
    id.length >> 8,
    id.length & 255,
    ...id,
  ]
  return Uint8Array.of(0x10, body.length, ...body)
}

// A server that answers CONNECT with a refusal and hangs up.
function refuse(transport: Transport, code: number, old: boolean): void {
  let answered = false
  const answer = (): void => {
    if (answered) return
    answered = true
    transport.write(old ? Uint8Array.of(0x20, 2, 0, 3) : Uint8Array.of(0x20, 3, 0, code, 0))
    transport.close()
  }
  transport.open({ ...ignoring, read: answer, chunk: answer })
}
