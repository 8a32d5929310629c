/**
 * The mqwire client behind an MQTT.js client: created on demand, replaced after it has ended, and
 * given the wanted filters again.
 *
 * It converts events. Errors thrown by listeners of the application never reach mqwire.
 */
import {
  Client,
  type ClientListeners,
  type DisconnectOptions,
  type FilterRequest,
  type Grant,
  type Handler,
  type Message,
  MqttError,
} from 'mqwire'
import { access } from '../client/access.js'
import { oneCopy } from '../client/options/hidden.js'
import { longestTimer } from '../common/schema.js'
import { familiar, isFault } from './errors.js'
import type { MqttClientEventCallbacks } from './event-types.js'
import { ignoredLine, type Plan } from './options.js'
import type { IConnackPacket, IDisconnectPacket, Packet } from './packet-types.js'
import { packetOf } from './packets.js'

/** Calls the listeners of an event. */
export type Emit = <E extends keyof MqttClientEventCallbacks>(
  event: E,
  ...given: Parameters<MqttClientEventCallbacks[E]>
) => void

/** A desired filter with the options of its SUBSCRIBE. */
export interface Wanted {
  readonly request: FilterRequest
  readonly properties: Record<string, unknown> | undefined
}

/** Ignored options already reported in this process. */
const reported = new Set<string>()

const silent = (): void => undefined

/** The mqwire client behind one compat client, across connections. */
export class BackingClient {
  connected = false
  /** From the first loss or failed attempt to the next CONNACK. */
  reconnecting = false
  /** Properties of the current connection. */
  serverProperties: IConnackPacket['properties']
  /** The wanted filters, kept across connections. */
  readonly wanted = new Map<string, Wanted>()
  /** Subscription Identifiers chosen by the program. */
  readonly identifiers = new Set<number>()
  readonly #plan: Plan
  /** Ignored options already named in the log. */
  readonly #named = new Set<string>()
  readonly #emit: Emit
  readonly #handler: Handler
  #core: Client | undefined
  /** An attempt has failed, and it is not known yet whether another one follows. */
  #failed = false
  /** The next dial is the first one, not a reconnect. */
  #first = true
  #tapped = false
  /** Filters may be waiting to be sent. */
  #asked = false
  /**
   * The last pending call on each filter that was made without a connection, or after such a call.
   */
  readonly #early = new Map<string, { readonly leaves: boolean; readonly done: Promise<unknown> }>()

  constructor(plan: Plan, emit: Emit, receive: (message: Message) => unknown) {
    this.#plan = plan
    this.#emit = emit
    this.#handler = Object.assign((message: Message) => receive(message), { [oneCopy]: this })
    // The client is created now so that its options are checked.
    this.#core = this.#make()
    this.#reportUnheeded()
  }

  // Each option is reported once per process, because programs usually start many clients with the
  // same options.
  #reportUnheeded(): void {
    const fresh = this.#plan.unheeded.filter((name) => !reported.has(name))
    for (const name of fresh) reported.add(name)
    if (fresh.length === 0) return
    this.core[access]().report?.(
      'MQWIRE_OPTION_IGNORED',
      `mqwire/compat has its own way in place of ${fresh.join(', ')}: leave it out`,
      undefined,
    )
  }

  /** True if MQTT 5.0 is used. */
  get modern(): boolean {
    return this.#plan.options.protocolVersion === 5
  }

  /** The current mqwire client; a new one if the last has ended. */
  get core(): Client {
    if (this.#core !== undefined) return this.#core
    const core = this.#make()
    this.#core = core
    for (const { request, properties } of this.wanted.values())
      core.listen(request, this.#handler, listening(properties)).catch(silent)
    return core
  }

  #make(): Client {
    const { endpoints, options } = this.#plan
    const core: Client = new Client(endpoints, { ...options, on: this.#listeners(() => core) })
    core.closed.then(() => this.#settle())
    if (this.#tapped) this.#listen(core)
    return core
  }

  /** Dials for the first time, which emits no `reconnect`. */
  start(): void {
    const { core } = this
    if (core.state !== 'idle') return
    this.#first = true
    core.connect().catch(silent)
  }

  /** Dials now; replaces an open connection. */
  restart(): void {
    this.#first = false
    this.core.reconnect({ force: true }).catch(silent)
  }

  /** Cuts the open connection, as a network failure would. */
  cut(cause: Error | undefined): void {
    const error = new MqttError(
      'ERR_CONNECTION_LOST',
      'connection lost: the program destroyed its stream',
      {
        fault: 'remote',
        outcome: 'unknown',
        cause,
      },
    )
    if (this.connected) this.core[access]().connections?.connection?.destroy(error)
  }

  /**
   * Ends the client: immediately with `force`, otherwise when all publishes are acknowledged.
   * `waits`: some are not; without a connection, they wait as long as a connect may take.
   */
  async stop(force: boolean, waits: boolean, goodbye: DisconnectOptions): Promise<void> {
    const core = this.#core
    if (core === undefined) return
    const { connected } = this
    if (force) core.destroy()
    else if (waits)
      await core.drain({
        timeout: connected ? longestTimer : this.#plan.options.connectTimeout,
        ...goodbye,
      })
    else await core.disconnect(connected ? goodbye : { timeout: 0 })
    await core.closed
  }

  /** Publishes, after filters requested before. */
  publish(...given: Parameters<Client['publish']>): ReturnType<Client['publish']> {
    this.#flush()
    return this.core.publish(...given)
  }

  /** Unsubscribes, after filters requested before. */
  unsubscribe(
    filters: readonly string[],
    options: Parameters<Client['unsubscribe']>[1],
  ): ReturnType<Client['unsubscribe']> {
    for (const filter of filters) this.wanted.delete(filter)
    this.#flush()
    return this.#inTurn(true, filters, (core) => core.unsubscribe(filters, options))
  }

  #flush(): void {
    if (this.#asked) this.core[access]().flush?.()
    this.#asked = false
  }

  // Without a connection, a SUBSCRIBE and an UNSUBSCRIBE of the same filter would cancel each other
  // before they are sent, so each waits for the one before.
  #inTurn<T>(
    leaves: boolean,
    filters: readonly string[],
    call: (core: Client) => Promise<T>,
  ): Promise<T> {
    const { core } = this
    const early = this.#early
    this.#asked = true
    const before = filters
      .map((filter) => early.get(filter))
      .filter((each) => each !== undefined && each.leaves !== leaves)
    const done =
      before.length === 0
        ? call(core)
        : Promise.allSettled(before.map((each) => each?.done)).then(() => call(core))
    if (this.connected && before.length === 0) return done
    for (const filter of filters) early.set(filter, { leaves, done })
    const over = (): void => {
      for (const filter of filters) if (early.get(filter)?.done === done) early.delete(filter)
    }
    done.then(over, over)
    return done
  }

  /** Logs ignored options, each once. */
  ignore(call: string, names: readonly string[]): void {
    const fresh = names
      .map((name) => `${call}({ ${name} })`)
      .filter((name) => !this.#named.has(name))
    for (const name of fresh) this.#named.add(name)
    if (fresh.length > 0) this.#plan.options.logger?.warn?.(ignoredLine(fresh))
  }

  /** Subscribes in one packet. */
  async subscribe(
    requests: readonly FilterRequest[],
    properties: Wanted['properties'],
  ): Promise<readonly Grant[]> {
    const { core, wanted } = this
    const identifier = properties?.['subscriptionIdentifier']
    if (typeof identifier === 'number') this.identifiers.add(identifier)
    const filters = requests.map(({ filter }) => filter)
    const former = new Map(filters.map((filter) => [filter, wanted.get(filter)]))
    const latter = new Map(requests.map((request) => [request.filter, { request, properties }]))
    for (const [filter, each] of latter) wanted.set(filter, each)
    // Restores a filter, unless a later call has changed it.
    const restore = (filter: string): void => {
      const before = former.get(filter)
      if (wanted.get(filter) !== latter.get(filter)) return
      if (before === undefined) wanted.delete(filter)
      else wanted.set(filter, before)
    }
    try {
      const { granted } = await this.#inTurn(false, filters, () =>
        core.listen(requests, this.#handler, listening(properties)),
      )
      for (const { filter, error } of granted) if (error !== undefined) restore(filter)
      return granted
    } catch (error) {
      // Calls stopped by the client's end are repeated with the next client.
      if (this.#core === core) filters.forEach(restore)
      throw error
    }
  }

  /** Emits packet events from now on. */
  tap(): void {
    if (!this.#tapped && this.#core !== undefined) this.#listen(this.#core)
    this.#tapped = true
  }

  #listen(core: Client): void {
    core.on('packet', ({ direction, packet }) =>
      this.#emit(
        direction === 'out' ? 'packetsend' : 'packetreceive',
        packetOf<Packet>(packet, this.modern),
      ),
    )
  }

  #listeners(core: () => Client): ClientListeners {
    return {
      state: ({ state }) => {
        if (state === 'closed' && this.#core === core()) this.#core = undefined
      },
      dial: () => {
        this.#settle()
        if (!this.#first) this.#emit('reconnect')
        this.#first = false
      },
      connect: ({ connack }) => {
        this.connected = true
        this.reconnecting = false
        const packet = packetOf<IConnackPacket>(connack, this.modern)
        this.serverProperties = packet.properties
        this.#emit('connect', packet)
      },
      connecterror: ({ error }) => {
        this.#failed = true
        this.#emit('error', familiar(error, this.modern) as Error)
      },
      reconnecting: () => {
        this.#offline()
        this.#settle()
      },
      serverdisconnect: ({ packet }) =>
        this.#emit('disconnect', packetOf<IDisconnectPacket>(packet, this.modern)),
      disconnect: ({ error }) => this.#down(core().state === 'reconnecting', error),
      unclaimed: ({ message }) => void Promise.resolve(this.#handler(message)).catch(silent),
      error: ({ error }) => this.#emit('error', error),
    }
  }

  #down(again: boolean, error: MqttError | undefined): void {
    this.connected = false
    this.serverProperties = undefined
    if (again) this.#offline()
    if (isFault(error)) this.#emit('error', familiar(error, this.modern) as Error)
    this.#emit('close')
    if (!again || this.#plan.shown.resubscribe !== false || this.wanted.size === 0) return
    this.core.unsubscribe([...this.wanted.keys()]).catch(silent)
    this.wanted.clear()
  }

  #offline(): void {
    if (this.reconnecting) return
    this.reconnecting = true
    this.#emit('offline')
  }

  // Called when it is known what follows a failed attempt.
  #settle(): void {
    if (!this.#failed) return
    this.#failed = false
    this.#emit('close')
  }
}

function listening(properties: Wanted['properties']): object {
  return { lifetime: 'borrowed', ...(properties !== undefined && { properties }) }
}
