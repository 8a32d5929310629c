/** What must hold at the end of a run of the world of many connections, whatever went wrong in it: each rule is a function with its name. */
import { isUnheard } from '../invariants-tools.js'
import { differs } from '../payloads.js'
import type { Call, End, Fed, Published, Read, Taken } from './history.js'
import type { ManyWorld } from './world.js'

export function checkHistory(world: ManyWorld): void {
  const results = [everythingSettles, resultsAgree, oneMemberHasIt, orderHolds, unsentMovesOn]
  const rest = [nothingIsInvented, endsWait, countersAddUp, wiresAreRight, noTimersAreLeft]
  const reading = [membersAreRight, keysComeOnce, everythingIsRead]
  for (const rule of [...results, ...rest, ...reading]) rule(world)
}

/** Every promise settles: of each publish, of each member of a broadcast, of each other call. */
export function everythingSettles({ history }: ManyWorld): void {
  const check = (what: string, { status }: End): void => {
    if (status === 'pending') history.report('settle', `${what} is pending after the end`)
  }
  for (const { name, end, ends } of history.published.values()) {
    check(`publish ${name}`, end)
    for (const [member, each] of ends) check(`publish ${name} at ${member}`, each)
  }
  for (const { what, end } of history.calls) check(what, end)
}

/** What a caller was told agrees with what the brokers saw. */
export function resultsAgree(world: ManyWorld): void {
  const { application, history } = world
  const elsewhere = new Set(application.elsewhere)
  for (const record of history.published.values()) {
    const { name, op, end, ends } = record
    const taken = takenOf(world, name)
    if (world.setup.subject === 'pool') {
      if (record.elsewhere !== elsewhere.has(name) && end.status === 'fulfilled')
        history.report('agree', `${name} is said to be with the fallback`)
      if (!record.elsewhere) checkEnd(world, record, end, taken, 'the broker')
      continue
    }
    for (const [member, each] of ends) {
      const own = taken.filter(({ broker }) => broker === member)
      checkEnd(world, record, each, own, member)
    }
    if (end.outcome === 'not-sent' && taken.length > 0)
      history.report('agree', `${name} is said to be not sent, and ${taken[0]?.broker} took it`)
    if (end.status !== 'fulfilled') continue
    const states = [...ends.values()]
    if (
      states.length === 0 ||
      states.every(({ status, later }) => status === 'rejected' && later === undefined)
    )
      history.report('agree', `${name} fulfilled, and no member took it`)
    const stranger = taken.find(({ broker }) => !ends.has(broker))
    if (stranger !== undefined)
      history.report(
        'agree',
        `${name} was taken by ${stranger.broker}, which the receipt does not name (QoS ${op.qos})`,
      )
  }
}

// At QoS 0 nobody knows.
function checkEnd(
  { history }: ManyWorld,
  { name, op }: Published,
  end: End,
  taken: readonly Taken[],
  where: string,
): void {
  const { status, outcome, code } = end
  if (status === 'fulfilled' && op.qos > 0 && taken.length === 0)
    history.report('agree', `${name} fulfilled, and ${where} never took it`)
  if (status === 'rejected' && outcome !== 'unknown' && taken.length > 0)
    history.report('agree', `${name} is said to be ${outcome} (${code}), and ${where} took it`)
}

/** A publish that may have been sent stays with its member; at QoS 2 it arrives once while no session is lost. */
export function oneMemberHasIt(world: ManyWorld): void {
  const { history, brokers } = world
  for (const { name, op, routing } of history.published.values()) {
    const taken = takenOf(world, name)
    const clients = new Set(taken.map(({ clientId }) => clientId))
    if (routing !== 'broadcast' && clients.size > 1)
      history.report('owner', `${name} was sent by ${[...clients].join(' and ')}`)
    for (const { name: broker, losses } of brokers) {
      const times = taken.filter((each) => each.broker === broker).length
      if (op.qos !== 1 && losses === 0 && times > 1)
        history.report('twice', `${name} of QoS ${op.qos} arrived ${times} times at ${broker}`)
    }
  }
}

/** What a member has not sent when it goes, another one gets, or the caller is told that there is none. */
export function unsentMovesOn({ history }: ManyWorld): void {
  const ended = Math.min(...history.calls.flatMap(({ what, seq }) => (isEnd(what) ? [seq] : [])))
  for (const { name, routing, end } of history.published.values())
    if (
      routing !== 'broadcast' &&
      end.code === 'ERR_CLOSED' &&
      end.outcome === 'not-sent' &&
      end.seq < ended
    )
      history.report(
        'unsent',
        `${name} was not sent by a member that went, and no other one got it`,
      )
}

/** First copies of one topic arrive in the order of the calls: at all brokers together where the topic has one member at a time, else of each member. */
export function orderHolds(world: ManyWorld): void {
  const { history, setup, application } = world
  const latest = new Map<string, Published>()
  const seen = new Set<string>()
  for (const { name, clientId } of history.taken) {
    const one = history.published.get(name)
    if (one === undefined || seen.has(`${name} ${clientId}`)) continue
    seen.add(`${name} ${clientId}`)
    const { op, routing, end, ends } = one
    // What was given up may still arrive, and what was refused came when it was sent again.
    if (
      op.refused !== undefined ||
      end.status !== 'fulfilled' ||
      [...ends.values()].some(({ status }) => status === 'rejected')
    )
      continue
    const isOneLine = routing === 'hash' && setup.onLost === 'wait' && op.qos > 0
    // What moved on arrives behind what was called later.
    if (!isOneLine && routing !== 'broadcast' && application.subject.stats().moved > 0) continue
    const line = `${op.topic} ${routing} ${op.qos > 0} ${isOneLine ? '' : clientId}`
    const before = latest.get(line)
    if (before !== undefined && before.op.n > op.n)
      history.report(
        'order',
        `${name} of ${op.topic} (${routing}) arrived after ${before.name}, at ${clientId}`,
      )
    else latest.set(line, one)
  }
}

/** Brokers get what was published, and nothing else. */
export function nothingIsInvented({ history }: ManyWorld): void {
  for (const { name, broker, bytes, topic, qos } of history.taken) {
    const record = history.published.get(name)
    const against = (why: string): void =>
      history.report('invented', `${broker} took ${name}${why}`)
    if (record === undefined) against(', which nobody published')
    else if (record.op.topic !== topic || record.op.qos !== qos)
      against(` of ${topic} at QoS ${qos}`)
    const wrong = record && differs(bytes, name, record.op.size)
    if (wrong !== undefined) against(`: ${wrong}`)
  }
}

/** Whoever waits for what is in flight ends when that has settled, or when its time is over. */
export function endsWait(world: ManyWorld): void {
  const { history } = world
  for (const call of history.calls) {
    const { what, timeout, at, end } = call
    if (timeout === undefined || end.status === 'pending') continue
    if (end.at - at > timeout + 1000)
      history.report('ends', `${what} took ${end.at - at} ms, and was given ${timeout}`)
    if (end.status === 'fulfilled') checkLeft(world, call)
    if (end.status === 'fulfilled' && what !== 'disconnect' && end.at < untilOf(world, call) - 2)
      checkEarly(world, call)
  }
}

// Whoever ends all is in more of a hurry, or in less.
function untilOf({ history }: ManyWorld, { at, timeout, seq, end }: Call): number {
  const ends = history.calls.filter(
    ({ what, seq: begun }) => isEnd(what) && begun > seq && begun < end.seq,
  )
  return Math.min(
    ...[{ at, timeout }, ...ends].map(
      (each) => each.at + (each.timeout ?? Number.POSITIVE_INFINITY),
    ),
  )
}

const isEnd = (what: string): boolean => what === 'drain' || what === 'disconnect'

// Whoever has ended has nothing in flight.
function checkLeft({ history }: ManyWorld, { what, leaving, seq, end: done }: Call): void {
  for (const { name, to, seq: begun, end } of history.handed) {
    const isOpen = end.status === 'pending' || end.seq > done.seq
    if (begun < seq && (isEnd(what) || leaving.includes(to)) && isOpen)
      history.report('ends', `${what} is done, and ${name} is in flight at ${to}`)
  }
}

// It says that nothing was left.
function checkEarly({ history, setup }: ManyWorld, { what, leaving, seq, end }: Call): void {
  // What never was to connect gives up what it has, as a client does.
  const connects = history.calls.filter((call) => call.what === 'connect' && call.seq < seq)
  if (setup.subject === 'group' && connects.length === 0) return
  for (const { name, to, seq: begun, end: given } of history.handed) {
    if (leaving.includes(to) && begun <= seq && given.seq > seq && given.code === 'ERR_CLOSED')
      history.report('ends', `${what} gave up ${name}, and had time left`)
  }
  if (what !== 'drain') return
  // Before that no connection was ever up, and those that waited for the first were told so.
  const first = Math.min(...history.handed.map(({ seq: place }) => place))
  // Of those that left before, the time may have been over.
  const isLeft = (name: string): boolean =>
    history
      .handedOf(name)
      .some(({ to, end: given }) => !leaving.includes(to) && given.status === 'rejected')
  for (const { name, end: told, seq: begun, lonely } of history.published.values()) {
    // Where no member is up a caller is told so, at any time.
    if (begun > seq || (lonely && told.code === 'ERR_NO_HEALTHY_PUBLISHERS')) continue
    if (told.status === 'pending' || told.seq > end.seq)
      history.report('ends', `drain is done, and ${name} has not settled`)
    else if (told.seq > Math.max(seq, first) && gaveUp.includes(told.code ?? '') && !isLeft(name))
      history.report('ends', `drain gave up ${name} (${told.code}), and had time left`)
  }
}

const gaveUp = ['ERR_CLOSED', 'ERR_NO_HEALTHY_PUBLISHERS']

/** What is counted in all is the sum of what was there. */
export function countersAddUp({ application, history }: ManyWorld): void {
  const stats = application.subject.stats()
  if (stats.inFlight !== 0)
    history.report('counters', `${stats.inFlight} are in flight after the end`)
  if (stats.up !== 0) history.report('counters', `${stats.up} are up after the end`)
  const { fallback } = stats as { fallback?: number }
  if (fallback !== undefined && fallback !== application.elsewhere.length)
    history.report(
      'counters',
      `${fallback} went to the fallback, which had ${application.elsewhere.length}`,
    )
  // To each member but the first it moved.
  const routed = history.handed.filter(
    ({ name }) => history.published.get(name)?.routing !== 'broadcast',
  )
  const moves = routed.length - new Set(routed.map(({ name }) => name)).size
  if (stats.moved < moves)
    history.report('counters', `${stats.moved} have moved, and ${moves} were seen to`)
}

export function wiresAreRight({ history, links, brokers }: ManyWorld): void {
  for (const { name, monitor } of links)
    for (const { rule, detail } of monitor.violations)
      history.report('wire', `${name}: ${rule}: ${detail}`)
  // Silence may be the network's.
  for (const { memory } of brokers)
    for (const { packet, text } of memory.violations)
      if (packet !== undefined) history.report('wire', `${packet}: ${text}`)
}

export function noTimersAreLeft({ history, links, timers, application }: ManyWorld): void {
  if (application.subject.state !== 'closed')
    history.report('leak', `the state is ${application.subject.state} after the end`)
  if (timers > 0)
    history.report(
      'leak',
      `${timers} timers of the ${application.pool === undefined ? 'group' : 'pool'} are left after the end`,
    )
  for (const { name, timers: left } of links)
    if (left() > 0) history.report('leak', `${left()} timers of ${name} are left after the end`)
}

/** What a broker had for a session that lives on was handed out. */
export function everythingIsRead(world: ManyWorld): void {
  const { history, schedule } = world
  if (!history.calls.some(({ what }) => isReading(what)) || schedule.ops.some((op) => isEnd(op.do)))
    return
  for (const name of unread(world)) history.report('unread', `${name} was never handed out`)
}

function takenOf({ history }: ManyWorld, name: string): readonly Taken[] {
  return history.taken.filter((each) => each.name === name)
}

// Reading

/** Messages that the group still has to hand out: a broker keeps them for a session that lives on, and nothing like them was handed out. */
export function unread({ history, brokers, application, setup }: ManyWorld): string[] {
  if (setup.reading === 'none') return []
  const handed = new Set(
    history.reads.flatMap(({ what, name }) => (what === 'handed' ? [name] : [])),
  )
  const asked = new Set(history.reads.map(({ name }) => name))
  const isOwed = ({ name, broker, losses }: Fed): boolean =>
    losses !== undefined &&
    losses === brokers.find((each) => each.name === broker)?.losses &&
    application.members.includes(broker) &&
    // A duplicate is looked at, and left out.
    !(setup.deduplicate === undefined ? handed : asked).has(name)
  return [...history.fed.values()].filter(isOwed).map(({ name }) => name)
}

/** Every message names the member that it came by, and was fed there. */
export function membersAreRight({ history }: ManyWorld): void {
  for (const { name, member } of history.reads) {
    const fed = history.fed.get(name)
    if (fed === undefined) history.report('member', `${name} was read, and nobody published it`)
    else if (fed.broker !== member)
      history.report('member', `${name} came by ${fed.broker}, and says ${member}`)
  }
}

/** A key is handed out once within its window, and left out for no other reason; what is left out is counted. */
export function keysComeOnce({ history, setup, application }: ManyWorld): void {
  const { deduplicate } = setup
  if (deduplicate === undefined || setup.reading === 'none') return
  const seen = new Map<string, number>()
  let left = 0
  for (const [index, read] of history.reads.entries()) {
    if (read.what !== 'key') continue
    const key = read.name.split('-')[0] as string
    const since = seen.get(key)
    const isNew = since === undefined || read.at - since >= deduplicate.window
    const isHanded = handedNext(history.reads, index)
    if (isNew && !isHanded)
      history.report(
        'keys',
        `${read.name} was left out at ${read.at} ms, and its key was last at ${since} ms`,
      )
    if (!isNew && isHanded)
      history.report(
        'keys',
        `${read.name} was handed out at ${read.at} ms, and its key was at ${since} ms`,
      )
    if (!isNew) {
      left += 1
      continue
    }
    seen.delete(key)
    seen.set(key, read.at)
    for (const [oldest, at] of seen) if (read.at - at >= deduplicate.window) seen.delete(oldest)
    if (seen.size > deduplicate.limit) seen.delete(seen.keys().next().value as string)
  }
  if (application.duplicates() !== left)
    history.report(
      'keys',
      `${application.duplicates()} duplicates are counted, and ${left} were left out`,
    )
}

// What is admitted is handed out before the next message of its member is looked at.
function handedNext(reads: readonly Read[], index: number): boolean {
  const { name, member } = reads[index] as Read
  const next = reads.find((read, at) => at > index && read.member === member)
  return next?.what === 'handed' && next.name === name
}

// Rest

/** What keeps a healed world from being at rest, in words. */
export function restless(world: ManyWorld): string[] {
  const { application, history } = world
  const pending = [
    ...[...history.published.values()].flatMap(({ name, end, ends }) => [
      ...(end.status === 'pending' ? [`${name} is pending`] : []),
      ...[...ends].flatMap(([member, each]) =>
        each.status === 'pending' ? [`${name} is pending at ${member}`] : [],
      ),
    ]),
    ...history.calls.flatMap(({ what, end }) =>
      end.status === 'pending' && !isReading(what) ? [`${what} is pending`] : [],
    ),
  ]
  if (application.stopped) return pending
  const begun = application.subject.state !== 'idle'
  const down = application.subject.members().filter(({ state }) => state !== 'connected')
  const { inFlight } = application.subject.stats()
  return [
    ...pending,
    ...(begun ? down.map(({ name, state }) => `${name} is ${state}`) : []),
    ...(inFlight > 0 ? [`${inFlight} publishes are in flight`] : []),
    ...unread(world).map((name) => `${name} was never handed out`),
    ...(history.calls.some(({ what, end }) => isReading(what) && end.status === 'pending')
      ? unsettledReading(world)
      : []),
  ]
}

// Every member has the subscription, and every message that was read is acknowledged.
function unsettledReading({ application, brokers, links }: ManyWorld): string[] {
  const isHeard = (name: string): boolean =>
    links.some((link) => link.name === name && !isUnheard(link))
  return application.members.flatMap((name) => {
    const session = brokers.find((broker) => broker.name === name)?.memory.sessions.get(`p-${name}`)
    return [
      ...((session?.subscriptions.length ?? 0) === 0 && isHeard(name)
        ? [`${name} is not subscribed to`]
        : []),
      ...((session?.inflight ?? 0) > 0
        ? [`${name} waits for ${session?.inflight} acknowledgements`]
        : []),
    ]
  })
}

export function isReading(what: string): boolean {
  return what === 'subscribe' || what === 'listen'
}
