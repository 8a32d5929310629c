/**
 * Defects that small programs of users found while every suite was green, planted again: the mend of each is taken out.
 *
 * The world has to find them by its own dimensions, not by the unit test that came with the mend. As in `defects.ts` each replaces a piece of source
 * text that occurs once. What no world can see is not here: costs are counted by `test/client/cost.test.ts`, the codec and the broker have suites.
 */
import type { Defect } from './defects.js'

/** All of them, by the name of what the user saw. */
export const outsideDefects: readonly Defect[] = [
  {
    name: 'a server that exceeds Receive Maximum is cut off',
    by: ['peace', 'I7'],
    file: 'client/session/receive-window.ts',
    find: 'return this.#tolerant\n',
    replace: 'return false\n',
  },
  {
    name: 'an error PUBREC behind PUBREL ends the link',
    by: ['peace', 'I7'],
    file: 'client/session/send-window.ts',
    find: '    if (reasonCode >= errorReason) return this.#refuse(0)\n    return state === AWAIT_PUBCOMP',
    replace: '    if (reasonCode >= errorReason) return this.#refuse(AWAIT_PUBACK)\n    return state === AWAIT_PUBCOMP',
  },
  {
    name: 'aliases of an earlier connection end each connection',
    by: ['I7'],
    file: 'client/dialling/dialling.ts',
    find: 'if (error.message === unknownAlias) this.#limits.topicAliasMaximum = 0',
    replace: '',
  },
  {
    name: 'what is buffered of a share is let go at disconnect',
    by: ['fleet'],
    file: 'client/delivery/consumer.ts',
    find: "return state === 'leaving' || (grouped && settled)",
    replace: 'return grouped && settled && state === undefined',
  },
  {
    name: 'payloads are read after their promise has settled',
    by: ['bytes'],
    file: 'client/publishing/settlement.ts',
    find: '    if (!again && output === undefined) return',
    replace: '    if (again || output !== undefined || payload.length > 0) return',
  },
  {
    name: 'post goes on reading bytes after it has returned',
    by: ['bytes'],
    file: 'client/publishing/publish-queue.ts',
    find: '    if (output.source === payload) output.source = new Uint8Array(payload)\n',
    replace: '',
  },
  {
    name: 'nobody is told when bytes of the quota come free',
    by: ['live', 'I7'],
    file: 'client/publishing/publish-queue.ts',
    find: '    if (this.size > 0) this.#host.links.connection?.writer.queueFlush()\n',
    replace: '',
  },
  {
    name: 'UNSUBSCRIBE is not split by what the server takes',
    by: ['held', 'live', 'I6'],
    file: 'client/subscribing/subscribe-sender.ts',
    find: 'this.#host.options.maxFiltersPerSubscribe, this.#limits.maximumPacketSize)',
    replace: "this.#host.options.maxFiltersPerSubscribe, packet.type === 'unsubscribe' ? 1e9 : this.#limits.maximumPacketSize)",
  },
  {
    name: 'a large payload is one write',
    by: ['peace', 'I7'],
    file: 'client/memory/write-buffers.ts',
    find: 'export const sliceBuffer = 128 * 1024',
    replace: 'export const sliceBuffer = 128 * 1024 * 1024',
  },
  {
    name: 'writing is no sign of life',
    by: ['peace', 'I7'],
    file: 'client/session/keep-alive.ts',
    find: '    if (now - this.#blockedAt < leastWait) return\n    this.#tookAt = now',
    replace: '    if (now - this.#blockedAt < leastWait) return',
  },
  {
    name: 'overflow policies act on what comes only',
    by: ['I8'],
    file: 'client/delivery/consumer.ts',
    find: "    if (!message.settled && this.config.overflow !== 'backpressure') this.#host.router.sweep.add(this.#overflow)\n",
    replace: '',
  },
  {
    name: 'a poisoned publish is sent for ever',
    by: ['I7'],
    file: 'client/publishing/isolation.ts',
    find: "    return broken('ERR_POISONED', undefined, error)",
    replace: '    return undefined',
  },
  {
    name: 'any lost connection counts against the oldest publish',
    by: ['blame'],
    file: 'client/publishing/isolation.ts',
    find: `    if (!complained && (item === alone ? session.keepAlive.asked : suspicion.strikes >= suspicious)) {
      suspicion.unheard += 1
      return undefined
    }`,
    replace: '',
  },
  {
    name: 'handlers beyond 64 are forgotten',
    by: ['turn'],
    file: 'client/delivery/outstanding.ts',
    find: "if (ack === 'manual' && this.messages.length >= this.#sweepAt && this.#readers.handler === undefined) {",
    replace: "if (ack === 'manual' && this.messages.length >= this.#sweepAt) {",
  },
  {
    name: 'a connection lost during the end cuts handlers off',
    by: ['turn'],
    file: 'client/lifecycle/transitions.ts',
    find: '  if (states.ended || error === undefined) return end(parts, undefined)',
    replace: '  if (states.stopping || error === undefined) return end(parts, undefined)',
  },
  {
    name: 'a goodbye over a stuck link is cut after a second',
    by: ['will'],
    file: 'client/lifecycle/ending.ts',
    find: '      link.end(atOnce ? undefined : timeout)',
    replace: '      link.end()',
  },
  {
    name: 'writable is fulfilled again and again',
    by: ['storm'],
    file: 'client/publishing/room.ts',
    find: `    this.#waiting ??= deferred()
    if (there)`,
    replace: `    if (!this.#host.stopping) return Promise.resolve()
    this.#waiting ??= deferred()
    if (there)`,
  },
  {
    name: 'a dead link is found late',
    by: ['dead'],
    file: 'client/session/limits.ts',
    find: 'Math.min(pingTimeout, Math.max(1000, keepAlive * 500))',
    replace: 'pingTimeout',
  },
  {
    name: 'destroy goes on handing out',
    by: ['after'],
    file: 'client/lifecycle/closing.ts',
    find: '    if (error === undefined) registry.membership.letGo()\n',
    replace: '',
  },
  {
    name: 'listen with concurrency forgets the order of a topic',
    by: ['I3'],
    file: 'client/delivery/lanes.ts',
    find: '    const key = this.#keyOf(message)',
    replace: '    const key = Math.random() + Number(this.#keyOf(message) === 0)',
  },
  {
    name: 'drop events that cause drop events have no pause',
    by: ['storm'],
    file: 'client/publishing/failures.ts',
    find: '      const delay = this.#events.length < mostTold ? 0 : pause',
    replace: '      const delay = 0',
  },
  {
    name: 'a transport that throws is not caught',
    by: ['throw', 'unhandled'],
    file: 'client/connection/stream-writer.ts',
    find: '      done(cause)\n',
    replace: '      if (cause !== undefined) throw cause\n      done(cause)\n',
  },
  {
    name: 'renewed credentials are told as a lost connection',
    by: ['peace'],
    file: 'client/lifecycle/transitions.ts',
    find: '  tellDown(parts, replaced ? given : error, replaced?.message)',
    replace: '  tellDown(parts, error, replaced?.message)',
  },
  {
    name: 'a responder that throws leaves its caller to the timeout',
    by: ['I4'],
    file: 'client/requesting/respond.ts',
    find: '    await this.#send(asked, failureOf(error))\n    return verdict',
    replace: '    return verdict',
  },
]
