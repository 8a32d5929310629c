/**
 * What tests and hooks see of a connection: nothing that could change it, and no password.
 */
import type { ProtocolVersion } from '../../wire/packets.js'
import type { Connection } from './connection.js'
import type { BrokerClient } from './events.js'

/** See the file's comment. */
export class ClientView implements BrokerClient {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  get clientId(): string {
    return this.#connection.clientId
  }

  get username(): string | undefined {
    return this.#connection.connect?.username
  }

  get protocolVersion(): ProtocolVersion {
    return this.#connection.output.version
  }

  get keepAlive(): number {
    return this.#connection.keepAlive
  }

  get remote(): string | undefined {
    return this.#connection.remote
  }

  get bytesIn(): number {
    return this.#connection.bytesIn
  }

  get bytesOut(): number {
    return this.#connection.output.bytes
  }
}
