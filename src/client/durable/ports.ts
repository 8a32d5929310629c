/**
 * What a session in a store needs of the client. Types only; `lifecycle/` implements it.
 */

import type { MqttError } from '../../errors.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { MessageTaker } from '../connection/ports.js'
import type { ClientContext, Extra } from '../context.js'
import type { MessageRouter } from '../deliver/message-router.js'
import type { Settler } from '../deliver/settler.js'
import type { PublishHost } from '../publish/ports.js'
import type { PublishQueue } from '../publish/publish-queue.js'

/** The client whose session is kept. */
export interface DurableHost extends ClientContext, Settler {
  /** In force: given, assigned by the server, or made up. */
  clientId: string
  readonly connections: PublishHost['connections'] & {
    inbox: MessageTaker
    readonly current: { readonly reader: PacketReader } | undefined
  }
  readonly states: PublishHost['states']
  readonly router: MessageRouter
  readonly publishQueue: PublishQueue
  /** What CONNACK has to wait for. */
  readonly extras: readonly Extra[]
  readonly reconnector: { begin(): void }
  /** No connection will come, because of this. */
  finish(error: MqttError): void
}
