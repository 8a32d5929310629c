/** What the application does with its pool or group, and notes of everything that it is told. */
import type { Receipt } from '../../../src/client/options/index.js'
import { groupOf } from '../../../src/group/broker-group.js'
import type { Group, GroupMessage, GroupReading, GroupReceipt } from '../../../src/group/types.js'
import type { MembersError } from '../../../src/members/failure.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import type { Pool } from '../../../src/pool/types.js'
import { given, payloadOf } from '../payloads.js'
import { payloadName } from '../reader.js'
import type { Call, End, History, Published } from './history.js'
import type { Op, PublishOp, Setup } from './schedule.js'
import type { Link, ManyWorld } from './world.js'

/** What a pool gives for a publish that the fallback has. */
const fallbackReceipt = 'the fallback has it'

/** A pool or a group, and who uses it. */
export class Application {
  readonly pool: Pool | undefined
  readonly group: Group | undefined
  stopped = false
  /** Names that went to the fallback, in order. */
  readonly elsewhere: string[] = []
  /** Messages that the group says it has left out. */
  readonly duplicates: () => number
  /** Names of members that are there, and of those that were taken out. */
  readonly members: string[] = []
  readonly gone: string[] = []
  readonly #world: ManyWorld
  readonly #routes: Routes
  #asked = false

  constructor(world: ManyWorld) {
    this.#world = world
    this.#routes = new Routes(world.setup, world.history)
    const { setup } = world
    const make = (...given: Parameters<ManyWorld['makeClient']>): Link['client'] =>
      world.makeClient(...given)
    const { keepAlive, cleanStart, onSessionLost, size, onLost } = setup
    const options = { keepAlive, cleanStart, stats: true, outbound: { onSessionLost } }
    const facade = <T extends object>(subject: T): T =>
      world.defect?.make().facade?.(subject) ?? subject
    this.duplicates = () => this.group?.stats().duplicates ?? 0
    if (setup.subject === 'pool') {
      const routing = setup.routing as 'hash'
      const fallback =
        setup.fallback === 'none' ? undefined : this.#fallback(setup.fallback === 'takes')
      const pool = { size, routing, onLost, clientId: 'p', fallback, options }
      this.pool = facade(poolOf(make, 'mqtt://b.example', pool))
      return
    }
    const { offline, stalledAfter } = setup
    const routing = setup.routing as 'broadcast'
    this.members.push(...Array.from({ length: size }, (_, index) => `m${index + 1}`))
    const members = Object.fromEntries(this.members.map((name) => [name, `mqtt://${name}.example`]))
    const shared = { ...options, clientId: 'p' }
    this.group = facade(groupOf(make, { members, routing, onLost, offline, stalledAfter, shared }))
  }

  get subject(): Pool | Group {
    return (this.pool ?? this.group) as Pool | Group
  }

  /** Does what the schedule says, while that can be done. */
  perform(op: Op): void {
    if (this.stopped && op.do !== 'publish' && op.do !== 'feed') return
    if (op.do === 'connect') this.#connect()
    else if (op.do === 'publish') this.#publish(op)
    else if (op.do === 'resize') this.#resize(op.size, op.timeout)
    else if (op.do === 'add') this.#add()
    else if (op.do === 'remove') this.#remove(op.place, op.timeout)
    else if (op.do === 'feed') this.#feed(op)
    else this.end(op.do, op.timeout)
  }

  end(how: 'drain' | 'disconnect', timeout: number): void {
    this.stopped = true
    const leaving = this.subject.members().map(({ name }) => name)
    const call = this.#track(how, () => this.subject[how]({ timeout }), timeout, leaving)
    const { history, clock } = this.#world
    const look = (): void => {
      if (call.end.status === 'pending') return void clock.setTimer(look, 1)
      if (this.#world.timers > 0)
        history.report('leak', `${this.#world.timers} timers are left after ${how}`)
    }
    clock.setTimer(look, 1)
  }

  /** A broadcast that one member took waits for others only while they are well. */
  checkBroadcasts(): void {
    const { history } = this.#world
    if (this.group === undefined) return
    const well = new Set(
      this.group.members().flatMap(({ name, healthy }) => (healthy ? [name] : [])),
    )
    for (const { name, routing } of history.unsettled) {
      if (routing !== 'broadcast') continue
      const handed = history.handedOf(name)
      const isTaken = handed.some((each) => each.end.status === 'fulfilled')
      const waits = handed.some((each) => each.end.status === 'pending' && well.has(each.to))
      if (isTaken && !waits)
        history.report(
          'late',
          `${name} was taken, and goes on waiting for members that are lost or do not answer`,
        )
    }
  }

  handleHanding(link: Link, name: string): void {
    const record = this.#world.history.published.get(name)
    if (record !== undefined) this.#routes.handleHanding(record, link.name, this.subject.members())
  }

  /** What is counted is never less than nothing, nor more than there is. */
  checkCounters(): void {
    const { history } = this.#world
    const stats = this.subject.stats()
    const members = this.subject.members()
    const sum = members.reduce((all, { inFlight }) => all + inFlight, 0)
    if (members.some(({ inFlight }) => inFlight < 0))
      history.report('counters', 'less than nothing is in flight at a member')
    if (stats.inFlight !== sum)
      history.report('counters', `${stats.inFlight} in flight, and ${sum} at the members`)
    if (stats.size !== members.length || stats.up > stats.size)
      history.report('counters', `${stats.up} of ${stats.size} up, ${members.length} members`)
    const open = history.handed.filter(
      ({ to, end }) => end.status === 'pending' && members.some(({ name }) => name === to),
    ).length
    if (sum !== open)
      history.report('counters', `${sum} in flight at the members, who have ${open}`)
  }

  #connect(): void {
    const { setup, history } = this.#world
    this.#track('connect', () => this.subject.connect())
    if (setup.reading === 'none' || this.#asked || this.group === undefined) return
    this.#asked = true
    // A group subscribes in any state.
    if (setup.reading === 'listen') return void history.track('listen', this.#listen(this.group))
    history.track('subscribe', this.#read(this.group))
  }

  #publish(op: PublishOp): void {
    const { history, clock, setup } = this.#world
    const name = `p${op.n}`
    const routing = op.routing ?? setup.routing
    const begun = { at: clock.now(), seq: history.next(), end: history.open(), ends: new Map() }
    const record: Published = { op, name, routing, ...begun, elsewhere: false, lonely: false }
    history.published.set(name, record)
    history.unsettled.add(record)
    const { payload, overwrite } = given(payloadOf(name, op.size), 'bytes')
    const before = this.stopped
      ? []
      : this.#routes.before(record, this.group, setup.offline, this.#few(op))
    const signal = op.abort === undefined ? undefined : this.#abortAfter(op.abort)
    const more = { qos: op.qos, ...(signal === undefined ? {} : { signal }) }
    const publishing: Promise<GroupReceipt | Receipt> =
      this.group === undefined
        ? (this.pool as Pool).publish(op.topic, payload as Uint8Array<ArrayBuffer>, more)
        : this.group.publish(op.topic, payload as Uint8Array<ArrayBuffer>, {
            ...more,
            ...(op.routing === undefined ? {} : { routing: op.routing }),
            ...(op.few === undefined || routing !== 'broadcast'
              ? {}
              : { members: this.#few(op) as string[] }),
          })
    this.#routes.after(record, before)
    history.follow(record.end, publishing, (value, error) => {
      history.note(`  ${name} ${record.end.status} ${error ?? ''} ${record.end.outcome ?? ''}`)
      // The memory is the application's again.
      overwrite()
      record.lonely = this.subject
        .members()
        .some(({ state }) => state === 'reconnecting' || state === 'connecting')
      history.unsettled.delete(record)
      this.#note(record, value, error)
    })
  }

  #few({ few }: PublishOp): readonly string[] | undefined {
    return few === undefined ? undefined : this.members.slice(0, Math.max(1, few))
  }

  // What became of it at each member.
  #note(record: Published, value: unknown, error: unknown): void {
    const { history, clock } = this.#world
    const { ends } = record
    const now = (): Pick<End, 'seq' | 'at'> => ({ seq: history.next(), at: clock.now() })
    if (value === fallbackReceipt) record.elsewhere = true
    if (value !== undefined && this.group !== undefined) {
      for (const [member, result] of Object.entries((value as GroupReceipt).members)) {
        if (result.status === 'fulfilled') ends.set(member, { status: 'fulfilled', ...now() })
        if (result.status === 'rejected') {
          const { code, outcome } = result.reason
          ends.set(member, { status: 'rejected', code, outcome, ...now() })
        }
        if (result.status !== 'pending') continue
        const end: End = { ...history.open(), later: true }
        ends.set(member, end)
        history.follow(end, result.delivered, () =>
          history.note(`  ${record.name} ${end.status} at ${member}`),
        )
      }
    }
    if (error !== undefined && this.group !== undefined)
      for (const [member, { code, outcome }] of Object.entries(
        (error as MembersError).members ?? {},
      ))
        ends.set(member, { status: 'rejected', code, outcome, ...now() })
  }

  #resize(size: number, timeout: number): void {
    if (this.pool === undefined) return
    const use = (state: string): number =>
      state === 'connected' ? 2 : state === 'closed' || state === 'disconnecting' ? 0 : 1
    const members = [...this.pool.members()]
    // Of those that are as good, the latest.
    const leaving = members.reverse().sort((one, other) => use(one.state) - use(other.state))
    const names = leaving.slice(0, Math.max(0, members.length - size)).map(({ name }) => name)
    this.gone.push(...names)
    this.#track(
      `resize to ${size}`,
      () => (this.pool as Pool).resize(size, { timeout }),
      timeout,
      names,
    )
  }

  #add(): void {
    if (this.group === undefined || this.members.length >= 4) return
    const name = `m${this.members.length + this.gone.length + 1}`
    this.members.push(name)
    this.#track(`add ${name}`, () => (this.group as Group).add(name, `mqtt://${name}.example`))
  }

  #remove(place: number, timeout: number): void {
    if (this.group === undefined || this.members.length < 2) return
    const name = this.members.splice(place % this.members.length, 1)[0] as string
    this.gone.push(name)
    this.#track(`remove ${name}`, () => (this.group as Group).remove(name, { timeout }), timeout, [
      name,
    ])
  }

  #feed(op: Extract<Op, { do: 'feed' }>): void {
    const { clock } = this.#world
    if (this.group === undefined) return
    for (const [index, number] of op.brokers.entries())
      clock.setTimer(() => this.#feedOne(op, number), index * op.later)
  }

  #feedOne({ n, topic, qos }: Extract<Op, { do: 'feed' }>, number: number): void {
    const { history, brokers } = this.#world
    const broker = brokers[number]
    if (broker === undefined || this.stopped) return
    const name = `f${n}-${broker.name}`
    if (history.fed.has(name)) return
    const wanted =
      qos > 0 && (broker.memory.sessions.get(`p-${broker.name}`)?.subscriptions.length ?? 0) > 0
    history.fed.set(name, {
      name,
      key: `f${n}`,
      topic,
      qos,
      broker: broker.name,
      losses: wanted ? broker.losses : undefined,
    })
    history.note(`  ${broker.name} has ${name}`)
    broker.memory.publish({ topic, payload: payloadOf(name), qos })
  }

  #track(
    what: string,
    begin: () => Promise<unknown>,
    timeout?: number,
    leaving: readonly string[] = [],
  ): Call {
    return this.#world.history.track(what, begin(), timeout, leaving)
  }

  #abortAfter(delay: number): AbortSignal {
    const controller = new AbortController()
    this.#world.clock.setTimer(() => controller.abort(), delay)
    return controller.signal
  }

  // Reading

  get #readingOptions(): GroupReading & { readonly qos: 2 } {
    const { deduplicate } = this.#world.setup
    const key = (message: GroupMessage): string => {
      this.#see('key', message)
      return payloadName(message.payload).split('-')[0] as string
    }
    return {
      qos: 2,
      ...(deduplicate === undefined ? {} : { deduplicate: { key, ...deduplicate } }),
    }
  }

  #see(what: 'key' | 'handed', { payload, member }: GroupMessage): void {
    const { history, clock } = this.#world
    const name = payloadName(payload)
    history.note(`  ${what} ${name} by ${member}`)
    history.reads.push({ what, name, member, at: clock.now() })
  }

  async #read(group: Group): Promise<void> {
    const ack = this.#world.setup.reading === 'manual' ? 'manual' : 'auto'
    const subscription = group.subscription('in/#', { ...this.#readingOptions, ack })
    for await (const message of subscription) {
      this.#see('handed', message)
      await this.#work()
      if (this.#world.setup.reading === 'manual') message.ack()
    }
  }

  async #listen(group: Group): Promise<void> {
    const options = this.#readingOptions
    const handling = await group.listen(
      'in/#',
      async (message) => {
        this.#see('handed', message)
        await this.#work()
      },
      options,
    )
    await handling.done
  }

  async #work(): Promise<void> {
    const { setup, clock } = this.#world
    if (setup.work > 0)
      await new Promise<void>((resolve) => void clock.setTimer(resolve, setup.work))
  }

  // A publisher that is the application's, with a memory of its own.
  #fallback(takes: boolean) {
    const publish = (_topic: string, payload: unknown): Promise<string> => {
      this.elsewhere.push(payloadName(payload as Uint8Array))
      return takes
        ? Promise.resolve(fallbackReceipt)
        : Promise.reject(new Error('the fallback takes nothing'))
    }
    return { publish, writable: Promise.resolve() } as never
  }
}

/** A member, as pools and groups show it. */
interface Shown {
  readonly name: string
  readonly state: string
  readonly inFlight: number
  readonly healthy?: boolean
}

/** Publishes that were handed to members, against the rules of routing. */
class Routes {
  readonly #setup: Setup
  readonly #history: History
  /** Whom the publish before got, and who was there then. */
  #last: { readonly to: string; readonly there: string } | undefined

  constructor(setup: Setup, history: History) {
    this.#setup = setup
    this.#history = history
  }

  /** A publish is about to be handed over. @param members as they are with it */
  handleHanding(record: Published, to: string, members: readonly Shown[]): void {
    const up = members.filter(({ state }) => state === 'connected')
    const healthy = up.filter(({ healthy }) => healthy !== false)
    const there = healthy.length > 0 ? healthy : up
    const report = (why: string): void =>
      this.#history.report('routing', `${record.name} (${record.routing}) goes to ${to}: ${why}`)
    if (record.routing === 'hash') return this.#checkOwner(record, to, report)
    if (record.routing === 'broadcast') return
    const chosen = there.find(({ name }) => name === to)
    if (chosen === undefined)
      return report(
        `it is none of those that take publishes, ${there.map(({ name }) => name).join()}`,
      )
    // It has this one already.
    const less = there.find(({ name, inFlight }) => name !== to && inFlight < chosen.inFlight - 1)
    if (record.routing === 'least-in-flight' && less !== undefined)
      report(`${less.name} has fewer in flight`)
    if (record.routing === 'round-robin') this.#checkTurn(to, there, report)
  }

  /** What a call will do. @param few of a broadcast: whom it names */
  before(
    { routing }: Published,
    group: Group | undefined,
    offline: Setup['offline'],
    few: readonly string[] | undefined,
  ): readonly string[] {
    if (group === undefined || routing !== 'broadcast') return []
    const asked = group.members().filter(({ name }) => few?.includes(name) ?? true)
    const takes = ({ state }: Shown): boolean =>
      state === 'connected' ||
      (offline === 'queue' && state !== 'closed' && state !== 'disconnecting')
    return asked.filter(takes).map(({ name }) => name)
  }

  /** A call has returned. @param wanted what `before` gave */
  after(record: Published, wanted: readonly string[]): void {
    const got = this.#history.handedOf(record.name).map(({ to }) => to)
    if (record.routing !== 'broadcast' || got.join() === wanted.join()) return
    this.#history.report(
      'routing',
      `${record.name} (broadcast) goes to ${got.join() || 'nobody'}, and is for ${wanted.join() || 'nobody'}`,
    )
  }

  #checkTurn(to: string, there: readonly Shown[], report: (why: string) => void): void {
    const names = there.map(({ name }) => name)
    const last = this.#last
    this.#last = { to, there: names.join() }
    if (last?.there !== names.join()) return
    const next = names[(names.indexOf(last.to) + 1) % names.length]
    if (next !== to) report(`it is the turn of ${next}`)
  }

  // While something of a topic is in flight, it stays where it is.
  #checkOwner(record: Published, to: string, report: (why: string) => void): void {
    if (this.#setup.onLost === 'move') return
    for (const { name, to: other, end } of this.#history.handed) {
      if (other === to || end.status !== 'pending') continue
      const published = this.#history.published.get(name)
      if (published?.routing === 'hash' && published.op.topic === record.op.topic)
        return report(`${other} has ${name} of its topic in flight`)
    }
  }
}
