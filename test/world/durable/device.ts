/** One client of the device with what its application does around it: a handler, a queue, and notes of everything that it was told. */
import type { BaseClient } from '../../../src/client/client.js'
import type { ClientEvents, Message } from '../../../src/client/options/index.js'
import type { Platform } from '../../../src/client/platform.js'
import type { MqttError } from '../../../src/errors.js'
import { openQueue, type Queue } from '../../../src/queue/index.js'
import { clientWith } from '../../support/defective.js'
import { payloadOf } from '../payloads.js'
import { shownEvent } from '../play.js'
import { payloadName } from '../reader.js'
import type { Outgoing } from './history.js'
import type { Op } from './schedule.js'
import type { KeptPublish } from './wire-rules.js'
import type { DurableWorld, Process } from './world.js'

const ends = ['disconnect', 'serverdisconnect', 'connecterror', 'sessionlost'] as const
const traced = ['state', 'connect', ...ends, 'recovered', 'drop', 'unclaimed', 'error'] as const

/** Milliseconds until a queue tries a refused entry again. */
const backoff = 200

export class Device {
  readonly client: BaseClient
  queue: Queue | undefined
  readonly pending = new Set<string>()
  /** Publishes that an earlier client had left. */
  readonly restored: readonly KeptPublish[]
  /** Identifiers that `recovered` events told of. */
  readonly recovered: number[] = []
  /** Undefined before the first `connect` event. */
  connected: ClientEvents['connect'] | undefined
  stopping = false
  readonly #world: DurableWorld
  readonly #process: Process
  readonly #number: number
  /** An earlier client of this process may still have been writing. */
  readonly #dirty: boolean
  readonly #inboundAtStart: number

  /** @param number of the client, from 1 */
  constructor(
    world: DurableWorld,
    process: Process,
    platform: Platform,
    number: number,
    dirty: boolean,
  ) {
    const { setup, history } = world
    const { store, view } = process
    this.#world = world
    this.#process = process
    this.#number = number
    this.#dirty = dirty
    // Of two with one identifier the older is over.
    const goingOn = view.publishes.filter(({ stage }) => stage === 'sent' || stage === 'released')
    this.restored = [...new Map(goingOn.map((kept) => [kept.packetId, kept])).values()]
    this.#inboundAtStart = view.inbound.size
    for (const { name } of this.restored) {
      const known = history.outgoing.get(name)
      if (known !== undefined) known.restored = true
    }
    this.client = clientWith(world.defect, platform, ['mqtt://broker.example'], {
      clientId: 'device',
      protocolVersion: setup.version,
      store: setup.inbound ? store : { store, inbound: false },
      keepAlive: setup.keepAlive,
      firstConnect: 'wait',
      reconnect: {},
      ...(setup.version === 5 ? { receiveMaximum: setup.receiveMaximum } : { cleanStart: false }),
      outbound: { onSessionLost: setup.onSessionLost },
    })
  }

  begin(): void {
    const { setup, history } = this.#world
    this.#listen()
    this.#track('connect', this.client.connect())
    const listening = this.client.listen('in/#', (message) => this.#handle(message), {
      qos: 2,
      concurrency: setup.handlers,
    })
    this.#track('listen', listening)
    if (setup.queue === 'shared')
      void this.#openQueue().catch((error) =>
        this.#whileAlive(() => history.report('queue', `openQueue: ${error}`)),
      )
  }

  /** Gives a message to the client or to the queue; false when there is no queue yet. */
  publish(op: Extract<Op, { do: 'publish' | 'enqueue' }>): boolean {
    const { history } = this.#world
    const name = `${op.do === 'publish' ? 'p' : 'e'}${op.n}`
    if (
      this.stopping ||
      (op.do === 'enqueue' && this.queue === undefined) ||
      history.outgoing.has(name)
    )
      return false
    const record: Outgoing = {
      op,
      name,
      client: this.#number,
      state: 'pending',
      error: undefined,
      restored: false,
      told: undefined,
    }
    history.outgoing.set(name, record)
    const payload = payloadOf(name, op.size)
    const call =
      op.do === 'publish'
        ? this.client.publish(op.topic, payload, { qos: op.qos })
        : this.#enqueue(record, payload)
    this.pending.add(name)
    call.then(
      () => this.#settle(record, undefined),
      (error) => this.#settle(record, error),
    )
    return true
  }

  /** Ends it in order, or at once; fulfils when another one may take its place. */
  async stop(how: 'disconnect' | 'destroy'): Promise<void> {
    this.stopping = true
    const closed = this.queue?.close({ timeout: 0 })
    if (how === 'destroy') this.client.destroy()
    else
      await this.client
        .disconnect({ timeout: 2000 })
        .catch((error) => this.#world.report('end', `disconnect: ${error}`))
    await closed
  }

  /** What is wrong with the events about what an earlier client had left. */
  checkRecovered(quiet: boolean): void {
    const { history, setup } = this.#world
    const { connected, recovered, restored } = this
    const dirty = this.#dirty
    if (connected === undefined) return
    const { outbound, inbound } = connected.recovered ?? { outbound: 0, inbound: 0 }
    const report = (detail: string): void =>
      history.report('recovered', `client ${this.#number}: ${detail}`)
    if (!dirty && outbound !== restored.length)
      report(`connect tells of ${outbound} publishes, the disk had ${restored.length}`)
    if (!dirty && setup.inbound && inbound !== this.#inboundAtStart)
      report(`connect tells of ${inbound} messages, the disk had ${this.#inboundAtStart}`)
    if (new Set(recovered).size !== recovered.length || recovered.length > outbound)
      report(`events for ${recovered.join()} of ${outbound} publishes`)
    if (quiet && recovered.length !== outbound)
      report(`${recovered.length} events, and connect told of ${outbound}`)
  }

  #track(what: string, call: Promise<unknown>): void {
    const { history } = this.#world
    this.pending.add(what)
    call.then(
      () => this.pending.delete(what),
      (error) =>
        this.#whileAlive(() => {
          this.pending.delete(what)
          if (!this.stopping) history.report('rejected', `${what}: ${error}`)
        }),
    )
  }

  #enqueue(record: Outgoing, payload: Uint8Array): Promise<unknown> {
    const { topic, qos } = record.op
    const queued = (this.queue as Queue).publish(topic, payload, { qos })
    const tell = (error: MqttError): void => {
      if (error.code !== 'ERR_QUEUE_CLOSED') record.told ??= `delivered: ${error.code}`
    }
    void queued.then(
      ({ delivered }) => void delivered.catch((error) => this.#whileAlive(() => tell(error))),
      () => undefined,
    )
    return queued
  }

  #settle(record: Outgoing, error: MqttError | undefined): void {
    this.#whileAlive(() => {
      this.pending.delete(record.name)
      record.state = error === undefined ? 'fulfilled' : 'rejected'
      record.error = error
      this.#world.history.note(
        `  ${record.name} ${record.state} ${error ?? ''} ${error?.outcome ?? ''}`,
      )
    })
  }

  async #openQueue(): Promise<void> {
    const { history, setup } = this.#world
    const { concurrency, letters } = setup
    const { store } = this.#process
    const queue = await openQueue(this.client, {
      store,
      name: 'q',
      concurrency,
      backoff: () => backoff,
      ...(letters ? { deadLetterStore: store } : {}),
    })
    if (!this.#process.alive) return
    this.queue = queue
    const tell = (name: string, why: string): void => {
      const record = history.outgoing.get(name)
      if (record !== undefined) record.told ??= why
    }
    queue.on('deadletter', ({ entry, error }) =>
      this.#whileAlive(() => tell(payloadName(entry.payload), `dead letter: ${error.code}`)),
    )
    queue.on('storecorrupt', ({ key }) => this.#whileAlive(() => history.report('damaged', key)))
    queue.on('error', ({ error }) => this.#whileAlive(() => history.note(`  queue error ${error}`)))
  }

  #listen(): void {
    const { history } = this.#world
    if (history.trace !== undefined)
      for (const type of traced)
        this.client.on(type, (event: unknown) =>
          this.#whileAlive(() => history.note(`  event ${type} ${shownEvent(event)}`)),
        )
    this.client.on('storecorrupt', ({ key }) =>
      this.#whileAlive(() => history.report('damaged', key)),
    )
    this.client.on('connect', (event) => this.#whileAlive(() => (this.connected ??= event)))
    this.client.on('recovered', ({ packetId, error }) =>
      this.#whileAlive(() => {
        this.recovered.push(packetId)
        const name = this.restored.find((kept) => kept.packetId === packetId)?.name ?? ''
        const record = history.outgoing.get(name)
        if (record === undefined || error === undefined) return
        if (error.code !== 'ERR_CLOSED') record.told ??= `recovered: ${error.code}`
        if (error.outcome === 'not-sent') record.error ??= error
      }),
    )
    this.client.on('state', ({ state }: { state: string }) =>
      this.#whileAlive(
        () =>
          state === 'closed' &&
          !this.stopping &&
          history.report('closed', 'the client has ended by itself'),
      ),
    )
  }

  async #handle(message: Message): Promise<void> {
    const { history, setup } = this.#world
    if (!this.#process.alive) return
    const name = payloadName(message.payload)
    history.note(`  handler gets ${name} id ${message.id}`)
    const fed = history.fed.get(name)
    if (fed === undefined) return history.report('handler', `${name} was never published`)
    fed.handed += 1
    this.#checkId(message, name)
    if (setup.failing > 0 && fed.op.n % setup.failing === 0 && fed.handed === 1)
      throw new Error('not today')
    if (setup.work > 0) await this.#world.sleep(this.#process, setup.work)
    if (this.#process.alive) fed.handled += 1
  }

  #checkId({ id, qos }: Message, name: string): void {
    const { history, setup, losses } = this.#world
    const { view } = this.#process
    if (qos === 0 || !setup.inbound) {
      if (id !== undefined) history.report('id', `${name} has an id, ${id}`)
      return
    }
    if (id === undefined) return history.report('id', `${name} has no id`)
    const stored = [...view.inbound.values()].some(
      ({ epoch, counter }) => id === `${epoch.toString(36)}-${counter.toString(36)}`,
    )
    // Of a session that is lost there are no records.
    const owned = history.fed.get(name)?.losses === losses
    if (!stored && owned)
      history.report('early', `${name} is handed out, and its id is not on the disk`)
    history.fed.get(name)?.ids.add(id)
    const other = history.named.get(id) ?? name
    history.named.set(id, name)
    if (other !== name) history.report('id', `${id} is the id of ${other} and ${name}`)
  }

  #whileAlive(what: () => unknown): void {
    if (this.#process.alive) what()
  }
}
