/**
 * What several members come to as one: their state, and when one of them is ready for a publish.
 */
import type { ClientState } from '../client/options/index.js'
import { type Deferred, deferred } from '../common/abort.js'
import type { Member } from './member.js'

const order: readonly ClientState[] = [
  'connected',
  'connecting',
  'reconnecting',
  'disconnecting',
  'idle',
]

/** The best state that any of them is in. @param ended true when all were asked to end */
export function stateOf(members: readonly Member[], ended: boolean): ClientState {
  const states = members.map(({ client }) => client.state)
  const best = order.find((state) => states.includes(state)) ?? 'closed'
  return ended && best !== 'disconnecting' ? 'closed' : best
}

/** What is wrong with each that is not up, a line for each; of many the first ones. */
export function storyOf(members: readonly Member[], most = 16): string {
  const lines = members
    .slice(0, most)
    .map(({ name, client, error }) => `${name}: ${error?.message ?? client.state}`)
  return [...lines, ...(members.length > most ? ['…'] : [])].join('\n')
}

/** Waits for a member that is ready. */
export class Readiness {
  #change: Deferred<void> = deferred()

  /** Fulfils when something changes. */
  get change(): Promise<void> {
    return this.#change.promise
  }

  /** Something has changed with a member, or with all. */
  handleChange(): void {
    this.#change.resolve()
    this.#change = deferred()
  }

  /** Fulfils when one of these fulfils. They are asked for at first and after each change; what `ask` throws it rejects with. */
  async wait(ask: () => readonly Promise<void>[]): Promise<void> {
    for (;;) {
      const change = this.#change.promise.then(() => false)
      // One that ends meanwhile is a change.
      const ready = ask().map((promise) =>
        promise.then(
          () => true,
          () => change,
        ),
      )
      if (await Promise.race([...ready, change])) return
    }
  }
}
