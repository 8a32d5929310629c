/**
 * Listeners of the events of all members, including members added later. Each event has the name of
 * its member.
 */

import { eventName } from '../client/options/check-options.js'
import type { ClientEvents, Hooks, ListenerOptions, Unlisten } from '../client/options/index.js'
import { onAbort } from '../common/abort.js'
import { disposeSymbol } from '../common/dispose.js'
import {
  assertHandler,
  boolean,
  object,
  optional,
  signal as parseSignal,
} from '../common/schema.js'
import { accessOf, type Member } from './member.js'

/** The events of clients, each with the name of the member. */
export type MemberEvents = {
  readonly [K in keyof ClientEvents]: ClientEvents[K] & {
    /** Name of the member. */
    readonly member: string
  }
}

const listenerOptions = object<ListenerOptions>({
  once: optional(boolean),
  signal: optional(parseSignal),
})

/** A listener, or hooks, attached to each member. */
interface Entry {
  /** For a listener: its event, and the function that calls it. */
  readonly type: keyof ClientEvents | undefined
  readonly emit: (event: never, member: Member) => void
  readonly attach: (member: Member) => Unlisten
  readonly attached: Map<Member, Unlisten>
}

/** Events that report the end of a member. */
const endings: readonly unknown[] = ['disconnect', 'error', 'serverdisconnect', 'state']

/** Listeners by member. */
export class MemberListeners {
  readonly #entries = new Set<Entry>()
  readonly #members: () => Iterable<Member>

  constructor(members: () => Iterable<Member>) {
    this.#members = members
  }

  /** Adds a listener. @throws MqttError ERR_INVALID_HANDLER, ERR_INVALID_OPTION */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten {
    eventName(type)
    assertHandler(listener, 'listener')
    const { signal, once } = listenerOptions(options)
    let over = signal?.aborted === true
    if (over) return disposable(() => undefined)
    const emit = (event: ClientEvents[K], member: Member): void => {
      if (over) return
      if (once) remove()
      listener({ ...event, member: member.name } as MemberEvents[K])
    }
    const removeEntry = this.#add({
      type,
      emit,
      attach: (member) => member.client.on(type, (event: ClientEvents[K]) => emit(event, member)),
      attached: new Map(),
    })
    const remove = (): void => {
      over = true
      unwatch()
      removeEntry()
    }
    const unwatch = onAbort(signal, remove)
    return disposable(remove)
  }

  /** Adds hooks to all members. @throws MqttError ERR_INVALID_OPTION */
  use(hooks: Hooks): Unlisten {
    return disposable(
      this.#add({
        type: undefined,
        emit: () => undefined,
        attach: ({ client }) => client.use(hooks),
        attached: new Map(),
      }),
    )
  }

  /** A member was added. */
  handleAdded(member: Member): void {
    for (const { attach, attached } of this.#entries) attached.set(member, attach(member))
  }

  /** A member was removed, and all its events have been emitted. */
  handleRemoved(member: Member): void {
    for (const { attached } of this.#entries) {
      attached.get(member)?.()
      attached.delete(member)
    }
  }

  /**
   * A member has ended by itself: emits an `error` event and logs it; without a listener or logger,
   * reports it.
   * @param heard true if the program gets the error elsewhere
   */
  handleEnded(member: Member, text: string, heard: boolean): void {
    const { error } = member
    if (error === undefined) return
    const entries = [...this.#entries]
    const listens = heard || entries.some(({ type }) => endings.includes(type))
    accessOf(member)?.report?.('MQWIRE_NOT_CONNECTED', text, error, listens || undefined)
    for (const { type, emit } of entries) {
      try {
        if (type === 'error') emit({ error } as never, member)
      } catch (thrown) {
        accessOf(member)?.log?.('error', "a listener of 'error' threw: ", thrown)
      }
    }
  }

  #add(entry: Entry): () => void {
    const { attach, attached } = entry
    for (const member of this.#members()) attached.set(member, attach(member))
    this.#entries.add(entry)
    return () => {
      this.#entries.delete(entry)
      for (const undo of attached.values()) undo()
      attached.clear()
    }
  }
}

function disposable(remove: () => void): Unlisten {
  return Object.assign(remove, { [disposeSymbol]: remove }) as Unlisten
}
