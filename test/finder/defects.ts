/**
 * Defects to plant in the source: what goes wrong where calls meet, and what the model of the finder has to see.
 *
 * Each replaces a piece of source text that occurs once. They are of the kind that a single test hardly looks for: a second caller, the turn of a call, one
 * more than the limit. The first ones were found by the finder itself: the mend is taken out again.
 */

/** One defect. */
export interface PlantedDefect {
  readonly name: string
  /** Below `src`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** All of them. */
export const plantedDefects: readonly PlantedDefect[] = [
  {
    name: 'a dial is told although setBrokers() has given it up',
    file: 'client/dialling/attempt.ts',
    find: '  signal.throwIfAborted()\n  host.links.handleDial(url, number, dropped)\n',
    replace: '  host.links.handleDial(url, number, dropped)\n',
  },
  {
    name: 'a connection that is replaced closes the client, says a publish',
    file: 'client/connection/connection.ts',
    find: "error ?? broken('ERR_CONNECTION_LOST')",
    replace: "error ?? broken('ERR_CLOSED')",
  },
  {
    name: 'listen that ended before it began is never done',
    file: 'client/delivery/handling.ts',
    find: '    if (consumer.ended) this.handleEnd(undefined)\n',
    replace: '',
  },
  {
    name: 'a subscription that was refused to its caller lives on',
    file: 'client/subscribing/unsubscribing.ts',
    find: '  for (const consumer of [...members.keys()]) consumer.leave()\n',
    replace: '',
  },
  {
    name: 'who joined connect() and aborts ends it for all',
    file: 'client/lifecycle/connecting.ts',
    find: '  return within(arrival, signal)\n',
    replace: '  onAbort(signal, () => destroy(parts, aborted(signal)))\n  return arrival\n',
  },
  {
    name: 'one caller aborts all who wait for a grant',
    file: 'client/subscribing/registry.ts',
    find: 'onAbort(signal, () => this.#fail(call, aborted(signal, call.outcome)))',
    replace: 'onAbort(signal, () => { for (const each of [...this.membership.calls.values()]) this.#fail(each, aborted(signal)) })',
  },
  {
    name: 'setBrokers() during the first dial is forgotten',
    file: 'client/dialling/dialling.ts',
    find: '    const { href } = this.#brokers.asked.target.url\n',
    replace: '    if (!this.connectedOnce && this.#attempt !== undefined) return\n    const { href } = this.#brokers.asked.target.url\n',
  },
  {
    name: 'setBrokers() leaves a dial to an old endpoint alone',
    file: 'client/dialling/dialling.ts',
    find: "    else if (kept < 0) this.#attempt?.abort(new MqttError('ERR_CONNECT_FAILED', 'left out by setBrokers()'))\n",
    replace: '',
  },
  {
    name: 'maxAttempts allows one more',
    file: 'client/dialling/supervisor.ts',
    find: 'this.#spent >= policy.maxAttempts',
    replace: 'this.#spent > policy.maxAttempts',
  },
  {
    name: '3.1.1 takes properties of a publish and drops them',
    file: 'client/publishing/queued-publish.ts',
    find: "  throw unsupported('properties')\n",
    replace: '  return {}\n',
  },
  {
    name: '3.1.1 takes properties of a will and drops them',
    file: 'client/parsing/options.ts',
    find: "return hasSettings(set.will?.properties ?? {}) ? [...names, 'will.properties'] : names",
    replace: 'return names',
  },
  {
    name: '3.1.1 takes options of a subscription and drops them',
    file: 'client/subscribing/pending-packets.ts',
    find: 'if (limits.protocolVersion === 4 && option !== undefined && calls.size > 0) return unsupported(option)',
    replace: '',
  },
  {
    name: 'a publish that was sent and is aborted says that it was not sent',
    file: 'client/publishing/admission.ts',
    find: "if (item.sent) return this.#ends.tell(item, aborted(signal, 'unknown'))",
    replace: 'if (item.sent) return this.#ends.tell(item, aborted(signal))',
  },
  {
    name: 'writable waits for ever on a client that is closed',
    file: 'client/publishing/room.ts',
    find: '    this.#waiting?.reject(closedError())\n',
    replace: '',
  },
  {
    name: 'flush waits for ever for a connection that was lost',
    file: 'client/connection/outgoing-bytes.ts',
    find: '    for (const { callback } of this.#waiting.drain()) callback(error)\n',
    replace: '    this.#waiting.drain()\n',
  },
  {
    name: 'connect() on a client that is connected says nothing',
    file: 'client/lifecycle/connecting.ts',
    find: "if (states.current === 'connected') throw new MqttError('ERR_ALREADY_CONNECTED')",
    replace: "if (states.current === 'connected') return",
  },
  {
    name: 'the end of a connection is told twice',
    file: 'client/lifecycle/closing.ts',
    find: '  if (!links.up) return\n  links.up = false\n',
    replace: '  if (!links.up) return\n',
  },
  {
    name: 'destroy() says goodbye',
    file: 'client/lifecycle/closing.ts',
    find: '  link?.writer.stop()\n  end(parts, error)\n',
    replace: '  if (parts.session.state === `connected`) links.replace(``)\n  end(parts, error)\n',
  },
  {
    name: 'a request outlives its client',
    file: 'client/requesting/request.ts',
    find: '    client.closed.then((error) => this.#failAll(error ?? closedError()))\n',
    replace: '',
  },
  {
    name: 'a view is taken for its whole memory',
    file: 'client/common/schema.ts',
    find: 'new Uint8Array(value.buffer, value.byteOffset, value.byteLength)',
    replace: 'new Uint8Array(value.buffer, 0, value.byteLength)',
  },
  {
    name: 'an abort names no cause',
    file: 'client/common/abort.ts',
    find: 'cause: signal?.reason',
    replace: 'cause: undefined',
  },
  {
    name: 'disconnect() waits for a turn as long as that takes',
    file: 'client/lifecycle/ending.ts',
    find: 'Promise.race([wait, this.#hurried.promise, this.#parts.states.closed.promise])',
    replace: 'Promise.race([wait, this.#parts.states.closed.promise])',
  },
]
