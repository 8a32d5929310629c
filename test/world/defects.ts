/**
 * Defects that are planted to see the checker fail. None of them is in the product: each replaces a piece of source text while the world is bundled.
 *
 * A defect whose text does not occur exactly once stops the run: it has to follow the source.
 */

/** One planted defect. */
export interface Defect {
  readonly name: string
  /** The rules that it breaks: it counts as caught when one of them is found broken. */
  readonly by: readonly string[]
  /** Below `src`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** All of them. */
export const defects: readonly Defect[] = [
  {
    name: 'no DUP on a replay',
    by: ['I6'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'item.payload, wire, packetId, true)',
    replace: 'item.payload, wire, packetId)',
  },
  {
    name: 'DUP on a republished message',
    by: ['I6'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'output.publish(topic, payload, wire, packetId)',
    replace: 'output.publish(topic, payload, wire, packetId, packetId > 3)',
  },
  {
    name: 'packet identifiers are used again while in flight',
    by: ['I6', 'I7'],
    file: 'client/session/packet-identifiers.ts',
    find: `    while (this.get(id) !== 0)
    this.#last = id`,
    replace: `    while (this.get(id) !== 0 && id !== 3)
    this.#last = id % 4`,
  },
  {
    name: 'acknowledged before it was delivered',
    by: ['I1'],
    file: 'client/delivery/outstanding.ts',
    find: "if (ack === 'on-receive') message.settle(0)",
    replace: 'message.settle(0)',
  },
  {
    name: 'send quota off by one',
    by: ['I6'],
    file: 'client/session/send-window.ts',
    find: 'return this.inFlight < this.quota && this.hasIdentifier',
    replace: 'return this.inFlight <= this.quota && this.hasIdentifier',
  },
  {
    name: 'quota given back at PUBREC',
    by: ['I6'],
    file: 'client/session/send-window.ts',
    find: `    this.set(id, AWAIT_PUBCOMP)
    this.#host.acks.push(PUBREL, id, 0)
    return RELEASED`,
    replace: `    this.set(id, AWAIT_PUBCOMP)
    this.#host.acks.push(PUBREL, id, 0)
    this.inFlight -= this.inFlight > 1 ? 1 : 0
    return RELEASED`,
  },
  {
    name: 'PUBREL is not replayed',
    by: ['I7'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of this.released()) sendWindow.replayRelease(item.packetId)',
    replace: 'for (const item of this.released()) sendWindow.replay(item.packetId)',
  },
  {
    name: 'PUBLISH again after PUBREC',
    by: ['I6', 'I7'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of this.released()) sendWindow.replayRelease(item.packetId)',
    replace: 'for (const item of this.released()) item.released = 0',
  },
  {
    name: 'replay in another order',
    by: ['I6'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of this.unreleased()) this.#replays.push(item)',
    replace: 'for (const item of this.unreleased().reverse()) this.#replays.push(item)',
  },
  {
    name: 'new messages before the replay',
    by: ['I6'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of this.unreleased()) this.#replays.push(item)',
    replace: `queueMicrotask(() => {
      for (const item of this.unreleased()) this.#replays.push(item)
      this.#host.flush()
    })`,
  },
  {
    name: 'nothing is replayed',
    by: ['I7'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of this.unreleased()) this.#replays.push(item)',
    replace: '',
  },
  {
    name: 'aliases outlive their connection',
    by: ['I6'],
    file: 'client/session/aliases.ts',
    find: `    this.#aliases.clear()
    this.#used = new Queue()
    this.#free.length = 0
    this.#maximum`,
    replace: '    this.#maximum',
  },
  {
    name: 'offline queue in another order',
    by: ['I3'],
    file: 'client/publishing/backlog.ts',
    find: `  push(item: QueuedPublish): void {
    this.queueOf(item).push(item)`,
    replace: `  push(item: QueuedPublish): void {
    if (this.size > 2) this.queueOf(item).unshift(item)
    else this.queueOf(item).push(item)`,
  },
  {
    name: 'a rejection is swallowed',
    by: ['I5', 'I7'],
    file: 'client/publishing/settlement.ts',
    find: `    item.reject(error)`,
    replace: `    if ((error as { code?: unknown }).code !== 'ERR_SESSION_LOST') item.reject(error)`,
  },
  {
    name: 'a publish that was sent is given up silently at the end',
    by: ['I5'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'for (const item of [...this.unreleased(), ...this.released()]) this.ends.fail(item, error)',
    replace: '',
  },
  {
    name: 'QoS 2 repeats are delivered again',
    by: ['I2'],
    file: 'client/session/receive-window.ts',
    find: 'this.ids.update((state) => (state === QOS2_RECEIVED || state === QOS2_ENDING ? QOS2_EARLIER : state))',
    replace: 'this.ids.update((state) => (state === QOS2_RECEIVED || state === QOS2_ENDING ? 0 : state))',
  },
  {
    name: 'a message in hand is delivered again',
    by: ['I2'],
    file: 'client/session/receive-window.ts',
    find: 'this.#parked.set(id, parked)',
    replace: 'this.#parked.set(id + 70_000, parked)',
  },
  {
    name: 'no resubscribe after the session was lost',
    by: ['I7'],
    file: 'client/subscribing/registry.ts',
    find: `const all = lost || resubscribe === 'always'`,
    replace: `const all = resubscribe === 'always'`,
  },
  {
    name: 'Clean Start stays 1',
    by: ['I6'],
    file: 'client/dialling/dialling.ts',
    find: '? !session.known : cleanStart',
    replace: '? !session.known || cleanStart : cleanStart',
  },
  {
    name: 'acknowledgements of an old connection leave on the next',
    by: ['I6'],
    file: 'client/session/receive-window.ts',
    find: `      parked.value = this.#decided(parked.value, ticket, reasonCode, from)
      return true`,
    replace: `      parked.value = this.#decided(parked.value, ticket, reasonCode, from)
      this.#host.acks.push((parked.value & qos2Flag) === 0 ? PUBACK : PUBREC, parked.value >>> idShift, 0)
      return true`,
  },
  {
    name: 'acknowledgements in the order of settling',
    by: ['I6'],
    file: 'client/session/receive-window.ts',
    find: `    this.setSlot(at, this.#decided(slot, ticket, reasonCode, from))
    this.#drain()`,
    replace: `    this.setSlot(at, this.#decided(slot, ticket, reasonCode, from))
    this.#acknowledge(this.slot(at))`,
  },
  {
    name: 'sessionlost is not told',
    by: ['I9'],
    file: 'client/lifecycle/transitions.ts',
    find: `if (!parts.states.ended) parts.events.emit('sessionlost',`,
    replace: `if (parts.states.ended) parts.events.emit('sessionlost',`,
  },
  {
    name: 'keep-alive is never sent',
    by: ['I6'],
    file: 'client/session/session.ts',
    find: `if (verdict === 'ping') this.send({ type: 'pingreq' })`,
    replace: `if (verdict === 'ping') this.known ||= false`,
  },
  {
    name: 'a disconnect event is missing',
    by: ['I9'],
    file: 'client/lifecycle/transitions.ts',
    find: 'parts.publishQueue.handleLost(error)\n  tellDown(parts, replaced ? given : error, replaced?.message)',
    replace: 'parts.publishQueue.handleLost(error)\n  links.up = false',
  },
  {
    name: 'a timer is left behind',
    by: ['leak'],
    file: 'client/lifecycle/closing.ts',
    find: '    session.reset()\n    links.expiry?.()\n    if (error',
    replace: '    session.reset()\n    if (error',
  },
  {
    name: 'the password is logged',
    by: ['canary'],
    file: 'client/lifecycle/transitions.ts',
    find: `parts.log('info', resumed ? 'connected, session resumed' : 'connected')`,
    replace: `parts.log('info', \`connected with \${new TextDecoder().decode(parts.options.password)}\`)`,
  },
  {
    name: 'queue without a limit',
    by: ['I8'],
    file: 'client/publishing/backlog.ts',
    find: 'return this.size + 1 > maxQueuedMessages * share ||',
    replace: 'return',
  },
  {
    name: 'a half-open link is kept for ever',
    by: ['I7'],
    file: 'client/session/keep-alive.ts',
    find: `if (now >= this.#deadDeadline) return 'dead'`,
    replace: 'if (now >= this.#deadDeadline) this.#pingedAt = now',
  },
  {
    name: 'a link that we give up gets no goodbye',
    by: ['I6'],
    file: 'client/lifecycle/links.ts',
    find: `    connection.writer.flush()
    this.#host.session.disconnect(0, {})
    connection.pump()`,
    replace: '    connection.writer.flush()',
  },
  {
    name: 'a request gets the next answer, whoever asked',
    by: ['I4'],
    file: 'client/requesting/request.ts',
    find: 'const call = correlationData?.length === correlationLength ? this.#open.get(keyOf(correlationData)) : undefined',
    replace: 'const call = correlationData?.length === correlationLength ? [...this.#open.values()].at(-1) : undefined',
  },
]
