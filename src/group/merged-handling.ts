/**
 * The `listen` of several members as one: each member calls the handler by itself, for its own messages in order.
 */
import type { Filters, Handling, ListenOptions, Subscriber } from '../client/options/index.js'
import { type Deferred, deferred, onAbort, silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { membersError } from '../members/failure.js'
import { granting, leaving } from './answers.js'
import { Duplicates, type GroupCommon } from './duplicates.js'
import { type Departure, type MergedMember, named } from './merge.js'
import type { CheckedReading } from './options.js'
import type { GroupGrant, GroupHandling, GroupMessage } from './types.js'

/** A member that calls handlers. */
export interface ListeningMember extends MergedMember {
  readonly client: Pick<Subscriber, 'listen'>
}

interface Source {
  readonly member: ListeningMember
  readonly begun: Promise<Handling>
  handling: Handling | undefined
  /** It has ended: with an error, or undefined. */
  end: { readonly error: unknown } | undefined
  /** Its member was removed. */
  leaving: boolean
}

/** The implementation of {@link GroupHandling}. */
export class MergedHandling implements GroupHandling {
  /** Members that come later are its too. */
  readonly all: boolean
  readonly #filters: Filters
  readonly #handler: (message: GroupMessage) => unknown
  readonly #reading: CheckedReading<ListenOptions>
  readonly #duplicates: Duplicates
  readonly #group: GroupCommon
  readonly #over: () => void
  #sources: readonly Source[] = []
  readonly #done: Deferred<void> = deferred()
  readonly #stop = new AbortController()
  #left: 'unsubscribe' | 'detach' | undefined
  /** No member comes any more. */
  #last = false

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
    this.#group = group
    this.#duplicates = new Duplicates(reading.deduplicate, group)
    const { signal } = reading.options
    const forget = onAbort(signal, () => this.#stop.abort(signal?.reason))
    this.#over = () => {
      forget()
      over()
    }
  }

  /** Listens on a member, in any state of it. */
  add(member: ListeningMember): void {
    if (this.#left !== undefined) return
    const { options } = this.#reading
    const begun = silent(
      member.client.listen(
        this.#filters,
        (message) => this.#duplicates.handle(named(message, member.name), member, this.#handler),
        {
          ...options,
          signal: this.#stop.signal,
        },
      ),
    )
    const source: Source = { member, begun, handling: undefined, end: undefined, leaving: false }
    this.#sources = [...this.#sources, source]
    const ended = (error?: unknown): void => this.#handleEnd(source, error)
    begun.then((handling) => {
      source.handling = handling
      if (this.#left === 'detach') handling.detach()
      else if (this.#left === 'unsubscribe') void silent(handling.unsubscribe())
      handling.done.then(() => ended(), ended)
    }, ended)
  }

  /** Fulfils when the members that are connected have granted it. @throws AggregateError */
  async granting(): Promise<GroupHandling> {
    try {
      await granting(
        () => this.#sources,
        ({ begun }) => begun,
        this.#reading.require,
        this.#group,
      )
      return this
    } catch (error) {
      void silent(this.unsubscribe())
      throw error
    }
  }

  get granted(): readonly GroupGrant[] {
    return this.#sources.flatMap(({ member, handling }) =>
      (handling?.granted ?? []).map((grant) => ({ ...grant, member: member.name })),
    )
  }

  get duplicates(): number {
    return this.#duplicates.count
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  async unsubscribe(): Promise<void> {
    await leaving(
      this.#leave('unsubscribe'),
      async ({ handling }) => handling?.unsubscribe(),
      this.#group,
    )
  }

  detach(): void {
    for (const { handling } of this.#leave('detach')) handling?.detach()
  }

  /** A member goes. Handlers that run for it end by themselves. */
  remove(member: ListeningMember, how: Departure): void {
    for (const source of this.#sources) {
      if (source.member !== member) continue
      source.leaving = true
      if (how === 'refused') void silent(source.begun.then((handling) => handling.unsubscribe()))
    }
    if (how === 'leaving') return
    this.#duplicates.release(member)
    this.#sources = this.#sources.filter((source) => source.member !== member)
    this.#look()
  }

  /** The group has ended: no member comes any more. */
  handleEnd(): void {
    this.#last = true
    this.#look()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await Promise.all(
      this.#leave('unsubscribe').map(({ handling }) => handling?.[asyncDisposeSymbol]()),
    )
  }

  #leave(how: 'unsubscribe' | 'detach'): readonly Source[] {
    this.#left ??= how
    // Those that wait for a connection end here.
    this.#stop.abort()
    this.#over()
    this.#look()
    return this.#sources
  }

  #handleEnd(source: Source, error: unknown): void {
    source.end ??= { error: this.#left === undefined ? error : undefined }
    this.#duplicates.release(source.member)
    if (source.leaving) this.#sources = this.#sources.filter((other) => other !== source)
    this.#look()
  }

  // It is over when all have ended; without any, when none can come.
  #look(): void {
    const sources = this.#sources
    const waits = this.all && this.#left === undefined && !this.#last && sources.length === 0
    if (waits || !sources.every(({ end }) => end !== undefined)) return
    this.#over()
    const failures = new Map(
      sources.flatMap(({ member, end }) =>
        end?.error === undefined ? [] : [[member.name, end.error] as const],
      ),
    )
    if (failures.size > 0 && failures.size === sources.length)
      this.#done.reject(membersError('ERR_CLOSED', 'every member has ended', failures))
    else this.#done.resolve()
  }
}
