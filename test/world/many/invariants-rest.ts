/**
 * What keeps a healed world of many connections from being at rest.
 */
import { isUnheard } from '../invariants-tools.js'
import { unread } from './invariants-reading.js'
import type { ManyWorld } from './world.js'

/** All of it, in words. */
export function restless(world: ManyWorld): string[] {
  const { application, history } = world
  const pending = [
    ...[...history.published.values()].flatMap(({ name, end, ends }) => [
      ...(end.status === 'pending' ? [`${name} is pending`] : []),
      ...[...ends].flatMap(([member, each]) => (each.status === 'pending' ? [`${name} is pending at ${member}`] : [])),
    ]),
    ...history.calls.flatMap(({ what, end }) => (end.status === 'pending' && !isReading(what) ? [`${what} is pending`] : [])),
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
    ...(history.calls.some(({ what, end }) => isReading(what) && end.status === 'pending') ? unsettledReading(world) : []),
  ]
}

// Every member has the subscription, and every message that was read is acknowledged.
function unsettledReading({ application, brokers, links }: ManyWorld): string[] {
  const isHeard = (name: string): boolean => links.some((link) => link.name === name && !isUnheard(link))
  return application.members.flatMap((name) => {
    const session = brokers.find((broker) => broker.name === name)?.memory.sessions.get(`p-${name}`)
    return [
      ...((session?.subscriptions.length ?? 0) === 0 && isHeard(name) ? [`${name} is not subscribed to`] : []),
      ...((session?.inflight ?? 0) > 0 ? [`${name} waits for ${session?.inflight} acknowledgements`] : []),
    ]
  })
}

/** Reading goes on until the end. */
export function isReading(what: string): boolean {
  return what === 'subscribe' || what === 'listen'
}
