/**
 * Whether somebody watches packets: asked for each packet, looked up only now and then, for nearly always nobody does.
 *
 * It may assume that it is told when a slice or a turn begins, and of each new listener. It must cost no more than a field that is read.
 */
import type { ConnectionHost } from './ports.js'

/** Those who watch the packets of one client, as its connection knows them. */
export class Watching {
  /** True when somebody watches. */
  on = false
  readonly #host: ConnectionHost

  constructor(host: ConnectionHost) {
    this.#host = host
    this.refresh()
  }

  /** Looks whether somebody watches. */
  refresh(): void {
    this.on = this.#host.links.watch !== undefined
  }
}
