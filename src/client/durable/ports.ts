/**
 * What a stored session needs from its client. Types only; `lifecycle/core.ts` implements it.
 */

import type { MqttError } from '../../errors.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { MessageTaker } from '../connection/ports.js'
import type { ClientContext, Extra } from '../context.js'
import type { MessageRouter } from '../deliver/message-router.js'
import type { Settler } from '../deliver/shared-outcome.js'
import type { PublishHost } from '../publish/ports.js'
import type { Publishing } from '../publish/publishing.js'

/** The client whose session is stored. */
export interface DurableHost extends ClientContext, Settler {
  /** The client identifier in use: configured, assigned by the server, or generated. */
  clientId: string
  readonly connections: PublishHost['connections'] & {
    inbox: MessageTaker
    readonly current: { readonly reader: PacketReader } | undefined
  }
  readonly states: PublishHost['states']
  readonly router: MessageRouter
  readonly publishing: Publishing
  /** Attached parts that CONNACK may wait for. */
  extras: readonly Extra[]
  readonly reconnector: { begin(): void }
  /** No connection will be made any more, because of this error. */
  finish(error: MqttError): void
}
