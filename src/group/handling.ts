/**
 * Combines the `listen` of several members: each member calls the handler independently, for its
 * own messages in order.
 */
import type { Filters, Handling, ListenOptions } from '../client/options/index.js'
import { type Deferred, deferred, onAbort, silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import type { Member } from '../members/member.js'
import { Duplicates } from './duplicates.js'
import type { CheckedReading } from './options.js'
import {
  type Departure,
  type GroupCommon,
  named,
  type ReadingMember,
  type Source,
  Sources,
} from './sources.js'
import type { GroupGrant, GroupHandling, GroupMessage } from './types.js'

interface ListeningSource extends Source {
  readonly begun: Promise<Handling>
  from: Handling | undefined
}

/** The implementation of {@link GroupHandling}. */
export class MergedHandling implements GroupHandling {
  /** True if it includes members added later. */
  readonly all: boolean
  readonly #filters: Filters
  readonly #handler: (message: GroupMessage) => unknown
  readonly #reading: CheckedReading<ListenOptions>
  readonly #duplicates: Duplicates
  readonly #sources: Sources<ListeningSource>
  readonly #over: () => void
  readonly #done: Deferred<void> = deferred()
  readonly #stop = new AbortController()
  #left: 'unsubscribe' | 'detach' | undefined

  constructor(
    filters: Filters,
    handler: (message: GroupMessage) => unknown,
    reading: CheckedReading<ListenOptions>,
    group: GroupCommon,
    over: () => void,
  ) {
    this.all = reading.members === undefined
    this.#filters = filters
    this.#handler = handler
    this.#reading = reading
    this.#duplicates = new Duplicates(reading.deduplicate, group)
    this.#sources = new Sources(this.all, group)
    const { signal } = reading.options
    const forget = onAbort(signal, () => this.#stop.abort(signal?.reason))
    this.#over = () => {
      forget()
      over()
    }
  }

  /** Listens on a member, in any state. */
  add(member: ReadingMember): void {
    if (this.#left !== undefined) return
    const begun = silent(
      member.client.listen(
        this.#filters,
        (message) => this.#duplicates.handle(named(message, member.name), member, this.#handler),
        { ...this.#reading.options, signal: this.#stop.signal },
      ),
    )
    const source: ListeningSource = {
      member,
      begun,
      from: undefined,
      end: undefined,
      leaving: false,
    }
    this.#sources.put(source)
    const ended = (error?: unknown): void => this.#handleEnded(source, error)
    begun.then((handling) => {
      source.from = handling
      if (this.#left === 'detach') handling.detach()
      else if (this.#left === 'unsubscribe') void silent(handling.unsubscribe())
      handling.done.then(() => ended(), ended)
    }, ended)
  }

  /** Fulfils when the connected members have granted it. @throws AggregateError */
  async granting(): Promise<GroupHandling> {
    try {
      await this.#sources.granting(({ begun }) => begun, this.#reading.require)
      return this
    } catch (error) {
      void silent(this.unsubscribe())
      throw error
    }
  }

  get granted(): readonly GroupGrant[] {
    return this.#sources.granted
  }

  get duplicates(): number {
    return this.#duplicates.count
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  async unsubscribe(): Promise<void> {
    this.#leave('unsubscribe')
    await this.#sources.leave(async ({ from }) => from?.unsubscribe())
  }

  detach(): void {
    this.#leave('detach')
    for (const { from } of this.#sources.all) from?.detach()
  }

  /** A member is removed. Its running handlers are not interrupted. */
  remove(member: Member, how: Departure): void {
    const removed = this.#sources.remove(member, how)
    if (how === 'leaving') return
    if (how === 'refused')
      for (const { begun } of removed) void silent(begun.then((handling) => handling.unsubscribe()))
    this.#duplicates.release(member)
    this.#look()
  }

  /** The group has ended: no members are added. */
  handleEnd(): void {
    this.#sources.complete()
    this.#look()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    this.#leave('unsubscribe')
    await Promise.all(this.#sources.all.map(({ from }) => from?.[asyncDisposeSymbol]()))
  }

  #leave(how: 'unsubscribe' | 'detach'): void {
    this.#left ??= how
    // Ends calls that wait for a connection.
    this.#stop.abort()
    this.#over()
    this.handleEnd()
  }

  #handleEnded(source: ListeningSource, error: unknown): void {
    source.end ??= { error: this.#left === undefined ? error : undefined }
    this.#duplicates.release(source.member)
    this.#look()
  }

  #look(): void {
    this.#sources.forget()
    if (!this.#sources.over) return
    this.#over()
    const { failure } = this.#sources
    if (failure === undefined) this.#done.resolve()
    else this.#done.reject(failure)
  }
}
