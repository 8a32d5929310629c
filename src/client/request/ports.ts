/**
 * What requests and responders need of a client: its public side. Types only.
 */
import type { MqttError } from '../../errors.js'
import type { Spoken } from '../options/check-calls.js'
import type {
  ClientEvents,
  ClientState,
  Filters,
  Handler,
  Handling,
  ListenOptions,
  Negotiated,
  Payload,
  PublishOptions,
} from '../options/index.js'
import type { Platform } from '../platform.js'

/** A client, as requests and responders use it. */
export interface RequestClient {
  readonly state: ClientState
  /** Settles at the end of the client with what ended it; never rejects. */
  readonly closed: Promise<MqttError | undefined>
  /** Undefined before the first CONNACK. */
  readonly negotiated: Pick<Negotiated, 'responseInformation'> | undefined
  publish(topic: string, payload: Payload, options: PublishOptions): Promise<unknown>
  listen(filters: Filters, handler: Handler, options: ListenOptions): Promise<Handling>
  on<K extends 'state' | 'connect'>(type: K, listener: (event: ClientEvents[K]) => void): () => void
}

/** What requests and responders need. */
export interface RequestHost extends Spoken {
  readonly session: Spoken['session'] & {
    readonly sendWindow: { asking: number; answersOn: string | undefined }
  }
  readonly client: RequestClient
  readonly platform: Pick<Platform, 'random' | 'setTimer'>
  /** Tells of a request that was refused before it began, and gives the rejection. */
  readonly publishQueue?: { refuse(topic: unknown, error: unknown): Promise<never> }
}
