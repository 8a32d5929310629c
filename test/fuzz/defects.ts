/**
 * Defects that are planted to see the oracles fail. None of them is in the product: each replaces a piece of source text while a target is built.
 *
 * A defect whose text does not occur exactly once stops the build: it has to follow the source.
 */
import type { Defect } from './bundler.js'

/** One planted defect, and the target that must find it. */
export interface PlantedDefect extends Defect {
  readonly name: string
  readonly target: 'wire' | 'session' | 'client'
  /** Rules that it breaks: it counts as found when one of them is. */
  readonly by: readonly string[]
}

/** All of them. */
export const defects: readonly PlantedDefect[] = [
  {
    name: 'a packet in two pieces has its body elsewhere',
    target: 'wire',
    by: ['wire-chunks', 'wire-throw', 'wire-view'],
    file: 'wire/framer.ts',
    find: 'this.body -= start',
    replace: 'this.body -= 0',
  },
  {
    name: 'text that is no UTF-8 is taken',
    target: 'wire',
    by: ['wire-fixpoint', 'wire-view'],
    file: 'wire/fields.ts',
    find: 'export function checkString(bytes: Uint8Array, at: number, end: number): number {',
    replace: 'export function checkString(bytes: Uint8Array, at: number, end: number): number {\n  if (end > at) return 0',
  },
  {
    name: 'a carried packet is copied anew with each byte',
    target: 'wire',
    by: ['wire-steps'],
    file: 'wire/carry.ts',
    find: 'new Uint8Array(Math.max(needed, smallestCarry, more))',
    replace: 'new Uint8Array(needed)',
  },
  {
    name: 'a property of another packet escapes as another error',
    target: 'wire',
    by: ['wire-throw'],
    file: 'wire/error.ts',
    find: 'export function malformed(message: string, offset: number): WireError {',
    replace: 'export function malformed(message: string, offset: number): WireError {\n  if (offset > 40) throw new RangeError(message)',
  },
  {
    name: 'the scanner in WebAssembly takes DUP for RETAIN',
    target: 'wire',
    by: ['wire-scanner'],
    file: 'wasm/frames.ts',
    find: 'view.retain = (first & 1) > 0',
    replace: 'view.retain = (first & 8) > 0',
  },
  {
    name: 'a topic is taken for another of the same size',
    target: 'wire',
    by: ['wire-cursor'],
    file: 'wire/topic-table.ts',
    find: 'if (entry.hash === hash && entry.size === size && isSame(this.#data, entry.start, data, start, size)) return entry',
    replace: 'if (entry.size === size) return entry',
  },
  {
    name: 'a slot stays occupied after PUBACK',
    target: 'session',
    by: ['slots', 'session-model', 'quota'],
    file: 'client/session/receive-window.ts',
    find: `      this.ids.set(id, 0)
      this.open -= 1
    }
    this.#host.acks.push(qos2 ? PUBREC : PUBACK, id, reasonCode)`,
    replace: `      this.ids.set(id, 0)
    }
    this.#host.acks.push(qos2 ? PUBREC : PUBACK, id, reasonCode)`,
  },
  {
    name: 'acknowledgements in the order of settling',
    target: 'session',
    by: ['session-acks', 'session-model'],
    file: 'client/session/receive-window.ts',
    find: '      if ((slot & statusMask) !== READY) return',
    replace: '      if (false as boolean) return',
  },
  {
    name: 'one publish too many in flight',
    target: 'session',
    by: ['quota'],
    file: 'client/session/send-window.ts',
    find: 'return this.inFlight < this.quota && this.hasIdentifier',
    replace: 'return this.inFlight <= this.quota && this.hasIdentifier',
  },
  {
    name: 'a server that broke the protocol is not told why',
    target: 'session',
    by: ['session-goodbye'],
    file: 'client/connection/connection.ts',
    find: "this.writer.sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })",
    replace: "if (reasonCode !== 0x82) this.writer.sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })",
  },
  {
    name: 'PUBREL that was not expected ends nothing',
    target: 'session',
    by: ['session-model'],
    file: 'client/session/receive-window.ts',
    find: "this.#break(0x82, 'PUBREL before PUBREC')",
    replace: 'this.#host.acks.push(PUBCOMP, id, 0)',
  },
  {
    name: 'publishes that wait are forgotten at the end',
    target: 'client',
    by: ['pending', 'leak'],
    file: 'client/publishing/publish-queue.ts',
    find: '    this.#admission.giveUp(notSent)\n',
    replace: '',
  },
  {
    name: 'a reader that waits is forgotten at the end',
    target: 'client',
    by: ['pending'],
    file: 'client/delivery/readers.ts',
    find: '      else call.reject(error)',
    replace: '      else void error',
  },
  {
    name: 'a timer is left behind',
    target: 'client',
    by: ['leak'],
    file: 'client/delivery/message-router.ts',
    find: '    this.#watch.stop()\n',
    replace: '',
  },
  {
    name: 'the queue has no limit',
    target: 'client',
    by: ['queue'],
    file: 'client/publishing/backlog.ts',
    find: 'return this.size + 1 > maxQueuedMessages * share ||',
    replace: 'return this.size + 1 > maxQueuedMessages * share * 9 ||',
  },
  {
    name: 'a packet larger than the server takes is sent',
    target: 'client',
    by: ['limits'],
    file: 'client/connection/packet-writer.ts',
    find: 'if (size > this.#packetLimit) {',
    replace: 'if (size > this.#packetLimit + 90) {',
  },
  {
    name: 'a disconnect event is told twice',
    target: 'client',
    by: ['state'],
    file: 'client/lifecycle/closing.ts',
    find: '  if (!links.up) return\n  links.up = false\n',
    replace: '  if (!links.up) return\n',
  },
  {
    name: 'a rejection that nobody handles',
    target: 'client',
    by: ['unhandled'],
    file: 'client/common/abort.ts',
    find: '  promise.catch(nothing)',
    replace: '',
  },
  {
    name: 'a burst in several pieces is dropped as if it were several reads',
    target: 'client',
    by: ['client-chunks'],
    file: 'client/connection/connection.ts',
    find: "    if (session.state === 'connected' && this.#host.waiting) this.#host.flush()\n",
    replace: "    if (session.state === 'connected' && this.#host.waiting) this.#host.flush()\n    this.#host.turns.readerTurns += 1\n",
  },
  {
    name: 'a borrowed message is read from a window that was reused',
    target: 'client',
    by: ['lifetime'],
    file: 'client/memory/read-windows.ts',
    find: 'piece.lent === 0',
    replace: 'piece.lent >= 0',
  },
]
