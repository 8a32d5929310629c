/**
 * What must be safe before it is acknowledged or sent [MQTT-4.1.0-1]: the session's side of a store.
 *
 * A session whose state ends with the process has `forgetful` in this place, and asks nothing of it. Types and one constant.
 */

/**
 * A change to the persistent session state (section 4.1): `put-release` our PUBREL, `put-inbound` the identifier of an incoming QoS 2 message that was
 * taken, `delete-inbound` after its PUBREL.
 */
export type PersistOperation = 'put-release' | 'put-inbound' | 'delete-inbound'

/** Where the session state is kept. */
export interface PersistPort {
  /** False where nothing has to be asked for. */
  readonly durable: boolean
  /** True where repeats of what was received on earlier connections are found by their content: they get tickets as messages do. */
  readonly recognises?: boolean
  /** Asks for a write; `granted` is called once it is safe, unless the session is reset before. Only where `durable`. */
  request(operation: PersistOperation, id: number, granted: () => void): void
  /** PINGRESP came: the server has read what was sent before PINGREQ. */
  confirm(): void
  /** The session is gone: what is kept of it is void. */
  reset(): void
}

const nothing = (): undefined => undefined

/** Keeps nothing. */
export const forgetful: PersistPort = {
  durable: false,
  request: nothing,
  confirm: nothing,
  reset: nothing,
}
