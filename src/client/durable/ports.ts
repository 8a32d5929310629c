/**
 * What a session in a store needs of the client. Types only; `lifecycle/` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { MessageTaker } from '../connection/ports.js'
import type { Settler } from '../deliver/arrival.js'
import type { MessageRouter } from '../deliver/message-router.js'
import type { ClientContext } from '../lifecycle/context.js'
import type { Extra } from '../lifecycle/extra.js'
import type { PublishingHost } from '../publish/ports.js'
import type { PublishQueue } from '../publish/publish-queue.js'

/** What reads packets of a connection. */
export interface HeldReader {
  /** Nothing behind what was read is read before `release`. */
  hold(holder: object): void
  release(holder: object): void
}

/** The client whose session is kept. */
export interface DurableHost extends ClientContext, Settler {
  /** In force: given, assigned by the server, or made up. */
  clientId: string
  readonly links: PublishingHost['links'] & {
    inbox: MessageTaker
    readonly current: { readonly reader: HeldReader } | undefined
  }
  readonly states: PublishingHost['states']
  readonly router: MessageRouter
  readonly publishQueue: PublishQueue
  /** What CONNACK has to wait for. */
  readonly extras: readonly Extra[]
  readonly dialling: { begin(): void }
  /** No connection will come, because of this. */
  finish(error: MqttError): void
}
