/** Calls of a client with a name, and how each came out. */
import { MqttError } from '../../../src/errors.js'

interface Entry {
  readonly name: string
  state: 'pending' | 'fulfilled' | 'rejected'
  error: unknown
}

/** Promises with a name. */
export class Ledger {
  readonly #entries: Entry[] = []

  /** A call that throws counts as one that is rejected. */
  add(name: string, make: () => unknown): void {
    const entry: Entry = { name, state: 'pending', error: undefined }
    this.#entries.push(entry)
    new Promise((resolve) => resolve(make())).then(
      () => {
        entry.state = 'fulfilled'
      },
      (error: unknown) => {
        entry.state = 'rejected'
        entry.error = error
      },
    )
  }

  get pending(): string[] {
    return this.#entries.filter(({ state }) => state === 'pending').map(({ name }) => name)
  }

  /** Rejections that are no MqttError. */
  get untyped(): unknown[] {
    return this.#entries
      .filter(({ state, error }) => state === 'rejected' && !MqttError.is(error))
      .map(({ name, error }) => [name, error])
  }

  /** Each with its error code, or how it stands. */
  get codes(): string[] {
    return this.#entries.map(
      ({ name, state, error }) =>
        `${name}: ${state === 'rejected' ? (error as MqttError).code : state}`,
    )
  }
}
