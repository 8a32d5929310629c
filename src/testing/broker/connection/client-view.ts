/**
 * A connection as tests and hooks see it: read-only and without the password.
 */
import type { ConnectPacket, ProtocolVersion } from '../../../wire/packets.js'
import type { BrokerClient } from '../common/events.js'

/** The object behind the view. */
export interface ViewedClient extends Omit<BrokerClient, 'username'> {
  readonly connect: ConnectPacket | undefined
}

/** See the file's comment. */
export class ClientView implements BrokerClient {
  readonly #client: ViewedClient

  constructor(client: ViewedClient) {
    this.#client = client
  }

  get clientId(): string {
    return this.#client.clientId
  }

  get username(): string | undefined {
    return this.#client.connect?.username
  }

  get protocolVersion(): ProtocolVersion {
    return this.#client.protocolVersion
  }

  get keepAlive(): number {
    return this.#client.keepAlive
  }

  get remote(): string | undefined {
    return this.#client.remote
  }

  get bytesIn(): number {
    return this.#client.bytesIn
  }

  get bytesOut(): number {
    return this.#client.bytesOut
  }
}
