/**
 * The interface between the client and its byte streams: ordered and reliable in each direction.
 *
 * A transport knows nothing of MQTT and owns no read buffer: the client lends it one through
 * `Sink.buffer()`. The sink is never called before `open()`, inside `open()` or `write()`, or after
 * `closed()`.
 */

/** Receives what a transport reads. Implemented by the client. */
export interface Sink {
  /**
   * The array for the next read. The client keeps ownership; without a `read()` in between, the
   * same memory is returned again. Node sockets call this right after `read()` and keep the array
   * until the next read, however long that takes. The memory may therefore be shared by several
   * sockets (a read and its `read()` are one synchronous step), but must not be used for anything
   * else. Never empty.
   */
  buffer(): Uint8Array
  /**
   * `length` bytes were written to the start of the array that `buffer()` last returned. They are
   * consumed before this returns.
   */
  read(length: number): void
  /**
   * Bytes in the transport's own memory. They are consumed or copied before this returns, so the
   * memory may be reused.
   */
  chunk(bytes: Uint8Array): void
  /** Writing may continue: called once after each time that `write()` returned false. */
  drain(): void
  /**
   * The stream has ended for any reason; called exactly once and last. `cause` is undefined after
   * an orderly end.
   */
  closed(cause: unknown): void
}

/** An open byte stream to one peer. */
export interface Transport {
  /**
   * Starts delivery. Called once. Earlier bytes, and an earlier end, are kept and delivered in
   * order.
   */
  open(sink: Sink): void
  /**
   * Queues bytes in order. False asks the caller to wait for `sink.drain()`; the bytes are accepted
   * all the same. The array does not change until `written` was called, with an error if the bytes
   * did not leave. Its memory is then reused, so `written` must be called exactly once, when the
   * array is no longer read. Must not throw: an error ends the connection, or fails a large publish
   * of which nothing was taken. After `close()`, `destroy()` or the end, it returns false,
   * `drain()` need not follow, and `written` gets an error.
   */
  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean
  /**
   * Sends what is queued, then ends the stream. `sink.closed` follows when both sides have ended;
   * bytes may come in until then.
   */
  close(): void
  /**
   * Asks to stop delivery; bytes that come in all the same are accepted. Absent if the transport
   * cannot. Usually short; long, for example, while messages have no room in the memory budget.
   */
  pause?(): void
  /** Undoes `pause()`; otherwise without effect. */
  resume?(): void
  /**
   * Closes the stream immediately. Nothing more is delivered except `sink.closed(cause)`, which is
   * called asynchronously.
   */
  destroy(cause?: unknown): void
}

/** The accepting side of a transport. */
export interface Listener {
  /** Its address, in the form of the matching endpoint, for example `mqtt://127.0.0.1:1883`. */
  readonly url: string
  /** Stops accepting and closes accepted streams. */
  close(): Promise<void>
}

/**
 * Receives each accepted stream before it is opened, with the peer's address and port as in a URL;
 * undefined if it has no address.
 */
export type Accept = (transport: Transport, remote?: string) => void

/** TLS settings of an endpoint (`mqtts`, `wss`). Not available in browsers. */
export interface TlsOptions {
  /**
   * Trusted certificate authorities, PEM. Default: the platform's. They never turn name checking
   * off.
   */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** Client certificate chain, PEM. Default: none. */
  readonly cert?: string | Uint8Array | undefined
  /** Client key, PEM. Default: none. */
  readonly key?: string | Uint8Array | undefined
  /** Password of `key`. Default: none. */
  readonly passphrase?: string | undefined
  /** Name for SNI and for the certificate check. Default: the URL's host. */
  readonly servername?: string | undefined
  /** ALPN protocols, preferred first. Default: none. */
  readonly alpn?: readonly string[] | undefined
  /** Oldest TLS version allowed. Default, and least: `'TLSv1.2'`. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  /**
   * Turns verification off. The value is the reason, which is included in the warning that each
   * connect prints. Default: verified.
   */
  readonly insecure?: string | undefined
}

/** Socket settings of an endpoint. Not available in browsers. */
export interface SocketOptions {
  /** TCP_NODELAY. Default true. */
  readonly noDelay?: boolean | undefined
  /** IP version to dial. Default: both. */
  readonly family?: 4 | 6 | undefined
  /** Name resolution with the signature of `dns.lookup`. Default: that. */
  readonly lookup?:
    | ((hostname: string, options: object, callback: (...result: never[]) => void) => void)
    | undefined
  /** Local address to bind. Default: any. */
  readonly localAddress?: string | undefined
  /**
   * Creates the streams instead of the platform, usually through a proxy; TLS and WebSocket run on
   * top of them. The other settings except `noDelay` are passed to it. It is never bypassed: if it
   * provides no stream, the attempt fails. Default: none.
   */
  readonly agent?: SocketAgent | undefined
}

/**
 * An agent like Node's `http.Agent`, for example of `https-proxy-agent` or `socks-proxy-agent`: it
 * creates a stream to a host and port. Of the two methods, `connect` is preferred. It must create a
 * tunnel; an agent that only forwards HTTP requests is refused.
 */
export interface SocketAgent {
  /**
   * Returns a stream, another agent, or a promise of one of them, as in the package `agent-base`.
   */
  connect?(request: never, options: never): unknown
  /** Returns a stream, or calls back with an error or a stream, as in `http.Agent`. */
  createConnection?(options: never, callback: never): unknown
}

/** A parsed and checked endpoint for a transport. Contains no credentials. */
export interface Target {
  /** The URL without user-info. */
  readonly url: URL
  /** TLS settings; may be empty. */
  readonly tls: TlsOptions
  /** Socket settings; may be empty. */
  readonly socket: SocketOptions
  /** HTTP headers of the WebSocket handshake; Node only. */
  readonly headers: Readonly<Record<string, string>>
  /** WebSocket sub-protocols. Default `['mqtt']`. */
  readonly protocols: readonly string[]
}

/** Options of dialling. */
export interface DialOptions {
  /** Aborts the attempt; a stream that opened meanwhile is destroyed. */
  readonly signal: AbortSignal
  /**
   * Bytes of the largest packet; an incoming WebSocket message may be four times as large. Default:
   * the transport's own.
   */
  readonly maximumPacketSize?: number | undefined
}

/**
 * Opens a stream to a target. Rejects with the platform's own error, which the caller wraps;
 * rejects with the signal's reason when aborted.
 */
export type Dial = (target: Target, options: DialOptions) => Promise<Transport>
