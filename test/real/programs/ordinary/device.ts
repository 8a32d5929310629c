/**
 * What an ordinary program does with a client, said once for mqwire and MQTT.js, so that both do the same work beside each other.
 *
 * Types only. Each implementation uses nothing but the public API of its package, with its defaults.
 */

/** How a device connects. What is left out is left to the defaults of the package. */
export interface DeviceOptions {
  readonly clientId?: string
  /** The session outlives the connection and the process: Clean Start 0, an hour. */
  readonly durable?: boolean
  readonly version?: 4 | 5 | 'auto'
  readonly maximumPacketSize?: number
  /** Instead of the window of the cell. */
  readonly receiveMaximum?: number
  readonly username?: string
  readonly password?: string
  readonly ca?: string
  /** Instead of the endpoint of the cell. */
  readonly url?: string
  readonly keepAlive?: number
  readonly will?: { readonly topic: string; readonly payload: string; readonly qos: 0 | 1 | 2 }
}

/** A message that arrived. */
export interface Arrival {
  readonly topic: string
  readonly payload: Uint8Array
  readonly retain: boolean
  text(): string
}

/** How messages are consumed. */
export interface ConsumeOptions {
  readonly qos: 0 | 1 | 2
  /** Handlers at a time. Default 1. */
  readonly concurrency?: number
  /** Of mqwire: `listen` (default), a `for await` loop, or manual acknowledgements. */
  readonly style?: 'listen' | 'loop' | 'manual'
}

export type Handle = (message: Arrival) => unknown

/** One client. */
export interface Device {
  /** Fulfils when the broker has it, at QoS 0 when it was handed over. */
  publish(
    topic: string,
    payload: string | Uint8Array,
    options?: { readonly qos?: 0 | 1 | 2; readonly retain?: boolean },
  ): Promise<unknown>
  /** Fulfils when the broker granted it. A message is acknowledged when its handler is done. Gives what ends it on the broker. */
  consume(
    filters: string | readonly string[],
    options: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>>
  /** Answers requests. */
  respond(
    filter: string,
    options: ConsumeOptions,
    answer: (text: string) => string | Promise<string>,
  ): Promise<unknown>
  request(topic: string, payload: string, qos: 0 | 1): Promise<string>
  /** Leaves as the package says that one leaves. */
  disconnect(): Promise<unknown>
  /** The process is gone: no goodbye, nothing remembered. */
  kill(): void
  /** The version that was agreed on. */
  readonly version: number
  /** What ended the client for good, if anything did. */
  readonly end: string | undefined
}

/** Makes a connected device. */
export type Connect = (url: string, options: DeviceOptions, books: Books) => Promise<Device>

/** Where a device tells what becomes of its connections. */
export interface Books {
  connections: number
  endedByUsBecause(cause: string): void
  endedByPeerBecause(cause: string): void
  fail(what: string): void
}
