/**
 * What the peer does in a `client` program: answers, messages, nonsense, silence.
 *
 * Each method is one operation and takes its arguments from the tape, whether there is a connection or not: what an input means must not depend on
 * how the client got on.
 */
import { type Arguments, codes, sizes, topics } from './arguments.js'
import { acknowledge, answer, auth, connack, disconnect, type Pairs, pingresp, publish } from './build.js'
import type { ClientRun } from './client-run.js'

/** The peer's operations. */
export class PeerProgram {
  readonly #run: ClientRun
  readonly #given: Arguments

  constructor(run: ClientRun, given: Arguments) {
    this.#run = run
    this.#given = given
  }

  answerAll(): void {
    this.#run.peer?.answer(true)
  }

  answerOne(): void {
    const code = this.#given.pick(codes)
    this.#run.peer?.answer(false, code)
  }

  answerBadly(): void {
    const place = this.#given.tape.byte()
    const value = this.#given.flags()
    this.#run.peer?.answer(false, 0, (bytes) => {
      const changed = bytes.slice()
      const at = place % changed.length
      changed[at] = (changed[at] as number) ^ (value || 1)
      return changed
    })
  }

  bring(count = 1): void {
    const topic = this.#given.pick(topics)
    const flags = this.#given.flags()
    const size = this.#given.pick(sizes)
    const id = 1 + (this.#given.tape.byte() & 7)
    const shape = { qos: flags & 3, dup: (flags & 4) !== 0, retain: (flags & 8) !== 0, pairs: this.#messagePairs(flags) }
    const peer = this.#run.peer
    for (let index = 0; index < count; index++) peer?.send(publish(peer, topic, new Uint8Array(size).fill(index), { ...shape, id: id + index }))
  }

  #messagePairs(flags: number): Pairs {
    const pairs: [number, ...(number | string)[]][] = []
    if (flags & 16) pairs.push([35, 1 + (flags >> 7)])
    if (flags & 32) pairs.push([8, 'mqwire/answers'], [9, 'c'])
    if (flags & 64) pairs.push([11, 1 + (flags >> 7)], [38, 'k', 'v'])
    return pairs
  }

  acknowledge(): void {
    const type = 4 + (this.#given.tape.byte() & 3)
    const id = 1 + (this.#given.tape.byte() & 7)
    this.#given.tell(`${type} ${id}`)
    const code = this.#given.pick(codes)
    const peer = this.#run.peer
    peer?.send(acknowledge(peer, type, id, code))
  }

  answerUnasked(): void {
    const flags = this.#given.flags()
    const code = this.#given.pick(codes)
    const peer = this.#run.peer
    peer?.send(answer(peer, flags & 1 ? 9 : 11, 1 + ((flags >> 1) & 7), Array<number>(1 + ((flags >> 4) & 1)).fill(code)))
  }

  connack(): void {
    const flags = this.#given.flags()
    const code = this.#given.pick(codes)
    const peer = this.#run.peer
    const pairs: Pairs =
      flags & 2
        ? [
            [33, 1],
            [19, 2],
          ]
        : flags & 4
          ? [
              [21, 'm'],
              [22, Uint8Array.of(flags >> 4)],
            ]
          : flags & 8
            ? [[18, 'given']]
            : []
    peer?.send(connack(peer, flags & 1, code, pairs))
  }

  sayGoodbye(): void {
    const code = this.#given.pick(codes)
    const explained = this.#given.flags() & 1
    const peer = this.#run.peer
    const why: Pairs = [
      [31, 'why'],
      [28, 'elsewhere'],
    ]
    peer?.send(disconnect(peer, code, explained ? why : []))
  }

  authenticate(): void {
    const flags = this.#given.flags()
    this.#run.peer?.send(
      auth(flags & 1 ? 0x18 : 0, [
        [21, flags & 2 ? 'n' : 'm'],
        [22, Uint8Array.of(flags >> 2)],
      ]),
    )
  }

  reply(): void {
    const flags = this.#given.flags()
    const peer = this.#run.peer
    const asked = peer?.outlet.asked
    if (peer === undefined || asked === undefined) return
    const pairs: Pairs = flags & 4 ? [] : [[9, flags & 8 ? asked.correlation.map((byte) => byte ^ 1) : asked.correlation]]
    peer.send(publish(peer, asked.topic, 'r', { qos: (flags & 3) % 3, id: 7, pairs }))
  }

  pong(): void {
    this.#run.peer?.send(pingresp)
  }

  raw(): void {
    const bytes = this.#given.tape.take(1 + (this.#given.tape.byte() & 31))
    this.#given.tell(Buffer.from(bytes).toString('hex'))
    this.#run.peer?.send(bytes)
  }

  cut(): void {
    const broken = this.#given.flags() & 1
    this.#run.peer?.end(broken ? new Error('the network is gone') : undefined)
  }

  stall(): void {
    const stalled = (this.#given.flags() & 1) === 0
    this.#run.endComparison()
    this.#run.stalled = true
    this.#run.peer?.stall(stalled)
  }

  turn(): void {
    this.#run.manner.answers = !this.#run.manner.answers
  }

  failDials(): void {
    this.#run.failingDials = this.#given.tape.byte() & 3
  }
}
