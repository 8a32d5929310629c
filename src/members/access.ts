/**
 * What is behind several clients that act as one, for what stands on top of them: typed topics report bad payloads there, as with one client.
 */

import { access, type ClientAccess } from '../client/access.js'
import { rejected } from '../common/abort.js'
import type { Member } from './member.js'

/** Internals of a member's client; undefined for a client of another package. */
export function accessOf({ client }: Member): ClientAccess | undefined {
  return (client as { [access]?(): ClientAccess })[access]?.()
}

/** The internals of several members as one: those of the member that a message came from, else of the first. */
export function accessOfAll(
  members: () => readonly Member[],
): ClientAccess & Required<Pick<ClientAccess, 'refuse'>> {
  const first = (): ClientAccess | undefined => {
    for (const member of members()) {
      const found = accessOf(member)
      if (found !== undefined) return found
    }
    return undefined
  }
  return {
    get modern() {
      return members().every((member) => accessOf(member)?.modern !== false)
    },
    reportInvalid(event, isFirst, message) {
      const by = members().find(
        ({ name }) => name === (message as { readonly member?: string } | undefined)?.member,
      )
      const source = by === undefined ? first() : accessOf(by)
      source?.reportInvalid(event, isFirst, message)
    },
    refuse: (topic, error) => first()?.refuse?.(topic, error) ?? rejected(error),
    log: (level, ...parts) => first()?.log?.(level, ...parts),
    report: (...report) => first()?.report?.(...report),
  }
}
