/**
 * Listeners of the events of all members, those of later members too. Each event says whose it is.
 */
import type { ClientEvents, ListenerOptions, Unlisten } from '../client/api/index.js'
import { onAbort } from '../client/common/abort.js'
import { disposeSymbol } from '../client/common/dispose.js'
import { assertHandler, boolean, object, optional, signal as parseSignal } from '../client/common/schema.js'
import { eventName } from '../client/parsing/event-names.js'
import type { Member } from './member.js'

/** The events of clients, each with the name of the member. */
export type MemberEvents = {
  readonly [K in keyof ClientEvents]: ClientEvents[K] & {
    /** Name of the member. */
    readonly member: string
  }
}

const listenerOptions = object<ListenerOptions>({ once: optional(boolean), signal: optional(parseSignal) })

interface Entry {
  readonly attach: (member: Member) => void
  readonly detach: (member: Member) => void
}

/** Listeners by member. */
export class MemberListeners {
  readonly #entries = new Set<Entry>()
  readonly #members: () => Iterable<Member>

  constructor(members: () => Iterable<Member>) {
    this.#members = members
  }

  /** Adds a listener. @throws MqttError ERR_INVALID_HANDLER, ERR_INVALID_OPTION */
  on<K extends keyof ClientEvents>(type: K, listener: (event: MemberEvents[K]) => void, options?: ListenerOptions): Unlisten {
    eventName(type)
    assertHandler(listener, 'listener')
    const { signal, once } = listenerOptions(options)
    const attached = new Map<Member, Unlisten>()
    let over = false
    const remove = (): void => {
      over = true
      this.#entries.delete(entry)
      stop()
      for (const unlisten of attached.values()) unlisten()
      attached.clear()
    }
    const entry: Entry = {
      attach: (member) => {
        const tell = (event: ClientEvents[K]): void => {
          if (over) return
          if (once) remove()
          listener({ ...event, member: member.name } as MemberEvents[K])
        }
        attached.set(member, member.client.on(type, tell))
      },
      detach: (member) => {
        attached.get(member)?.()
        attached.delete(member)
      },
    }
    let stop = (): void => undefined
    if (!signal?.aborted) {
      this.#entries.add(entry)
      for (const member of this.#members()) entry.attach(member)
      stop = onAbort(signal, remove)
    }
    return Object.assign(remove, { [disposeSymbol]: remove }) as Unlisten
  }

  /** A member has come. */
  handleAdded(member: Member): void {
    for (const { attach } of this.#entries) attach(member)
  }

  /** A member has gone, and told all it had to tell. */
  handleRemoved(member: Member): void {
    for (const { detach } of this.#entries) detach(member)
  }
}
