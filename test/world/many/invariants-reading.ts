/**
 * What must hold of the messages that a group reads.
 */
import type { Fed, Read } from './history.js'
import type { ManyWorld } from './world.js'

/** Messages that the group still has to hand out: a broker keeps them for a session that lives on, and nothing like them was handed out. */
export function unread({ history, brokers, application, setup }: ManyWorld): string[] {
  if (setup.reading === 'none') return []
  const handed = new Set(history.reads.flatMap(({ what, name }) => (what === 'handed' ? [name] : [])))
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
    else if (fed.broker !== member) history.report('member', `${name} came by ${fed.broker}, and says ${member}`)
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
        `${read.name} was left out at ${read.at} ms, and its key came ${since === undefined ? 'never' : `at ${since} ms`} before`,
      )
    if (!isNew && isHanded) history.report('keys', `${read.name} was handed out at ${read.at} ms, and its key was at ${since} ms`)
    if (!isNew) {
      left += 1
      continue
    }
    seen.delete(key)
    seen.set(key, read.at)
    for (const [oldest, at] of seen) if (read.at - at >= deduplicate.window) seen.delete(oldest)
    if (seen.size > deduplicate.limit) seen.delete(seen.keys().next().value as string)
  }
  if (application.duplicates() !== left) history.report('keys', `${application.duplicates()} duplicates are counted, and ${left} were left out`)
}

// What is admitted is handed out before the next message of its member is looked at.
function handedNext(reads: readonly Read[], index: number): boolean {
  const { name, member } = reads[index] as Read
  for (let at = index + 1; at < reads.length; at++) {
    const read = reads[at] as Read
    if (read.member !== member) continue
    return read.what === 'handed' && read.name === name
  }
  return false
}
