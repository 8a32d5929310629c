/**
 * Whether somebody watches packets: asked for each packet, looked up only now and then, for nearly always nobody does.
 *
 * It may assume that it is told when a slice or a turn begins. It must never cost more than a comparison while nobody watches.
 */
import type { ConnectionHost } from './ports.js'

/** Those who watch the packets of one client, as its connection knows them. */
export class Watching {
  readonly #host: ConnectionHost
  #listeners = -1
  #on = false

  constructor(host: ConnectionHost) {
    this.#host = host
  }

  /** It is looked up anew with the next packet. */
  refresh(): void {
    this.#listeners = -1
  }

  /** True when somebody watches. */
  get on(): boolean {
    const { changes } = this.#host.events
    if (this.#listeners !== changes) {
      this.#listeners = changes
      this.#on = this.#host.watch !== undefined
    }
    return this.#on
  }
}
