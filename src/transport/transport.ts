/**
 * The interface between the client and whatever carries its bytes: an ordered, reliable byte stream in each direction.
 *
 * A transport knows nothing of MQTT and owns no read window: the client lends it one through `Sink.buffer()`. It never calls the sink before
 * `open()`, never calls it from inside `open()` or `write()`, and never calls it again after `closed()`.
 */

/** Where a transport delivers what it reads. The client implements it. */
export interface Sink {
  /**
   * Where the next read may go. The array stays the client's; asking again without `read()` in between gives the same memory.
   * Node sockets ask right after `read()` returns and keep the array until the next read, however long that takes: memory that is lent to them may
   * be shared by several of them (a read and its `read()` are one synchronous step), but not be reused for anything else. Never empty.
   */
  buffer(): Uint8Array
  /** `length` bytes were put at the start of the array that `buffer()` gave last. Consumed before it returns. */
  read(length: number): void
  /** Bytes that the transport holds itself. They are consumed or copied before it returns: the memory may be reused afterwards. */
  chunk(bytes: Uint8Array): void
  /** Writing may go on: called once after each time `write()` returned false. */
  drain(): void
  /** The stream is over, for whatever reason; called exactly once, and last. `cause` is undefined after an orderly end. */
  closed(cause: unknown): void
}

/** An open byte stream to one peer. */
export interface Transport {
  /** Starts delivery. Called once. Bytes and an end that came in before are kept and delivered in order. */
  open(sink: Sink): void
  /**
   * Queues bytes, in order. False asks the caller to wait for `sink.drain()`; the bytes are taken all the same.
   * The array stays as it is until `written` was called, with an error when the bytes did not leave; after that its memory is written again, so that
   * it must be called once, when it is not read any more. Never throws, for that ends the connection, or fails a large publish of which it took
   * nothing. After `close()`, `destroy()` or the end it returns false, `drain()` is not
   * promised, and `written` gets an error.
   */
  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean
  /** Sends what is queued, then ends the stream. `sink.closed` follows when both sides are done; bytes may come in until then. */
  close(): void
  /** Asks to deliver nothing for a moment; what comes all the same is taken. Absent where a transport cannot. For long only where a server sends more than memory holds, and heeds no Receive Maximum. */
  pause?(): void
  /** Ends what `pause()` began. Harmless without it. */
  resume?(): void
  /** Cuts the stream at once; nothing is delivered any more but `sink.closed(cause)`, which follows outside the caller's stack. */
  destroy(cause?: unknown): void
}

/** The accepting side of a transport. */
export interface Listener {
  /** Where it listens, in the form that the matching endpoint takes, for example `mqtt://127.0.0.1:1883`. */
  readonly url: string
  /** Stops accepting and cuts what was accepted. */
  close(): Promise<void>
}

/** Takes each accepted stream, not yet opened, and where it comes from: address and port as a URL has them; undefined where there is no address. */
export type Accept = (transport: Transport, remote?: string) => void

/** TLS settings of an endpoint (`mqtts`, `wss`). In a browser none of them can be honoured. */
export interface TlsOptions {
  /** Trusted certificate authorities, PEM. Default: the platform's. Never turns name checking off. */
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
  /** Oldest version of TLS that is spoken. Default, and least: `'TLSv1.2'`. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  /** Turns verification off. Takes the reason, which is part of the warning that each connect prints. Default: verified. */
  readonly insecure?: string | undefined
}

/** Socket settings of an endpoint. In a browser none of them can be honoured. */
export interface SocketOptions {
  /** TCP_NODELAY. Default true. */
  readonly noDelay?: boolean | undefined
  /** IP version to dial. Default: both. */
  readonly family?: 4 | 6 | undefined
  /** Name resolution in the manner of `dns.lookup`. Default: that. */
  readonly lookup?:
    | ((hostname: string, options: object, callback: (...result: never[]) => void) => void)
    | undefined
  /** Local address to bind. Default: any. */
  readonly localAddress?: string | undefined
  /**
   * Makes the streams in place of the platform, by way of a proxy as a rule; TLS and WebSocket are spoken on top of them. The other settings but `noDelay`
   * are handed to it. There is no way around it: where it makes no stream, the attempt fails. Default: none.
   */
  readonly agent?: SocketAgent | undefined
}

/**
 * An agent in the manner of Node's `http.Agent`, such as those of `https-proxy-agent` and `socks-proxy-agent`: it makes a stream to host and port. Of the
 * two methods, `connect` is preferred. It has to make a tunnel: what only forwards HTTP requests is refused.
 */
export interface SocketAgent {
  /** Gives a stream, another agent, or a promise of one of them, in the manner of the package `agent-base`. */
  connect?(request: never, options: never): unknown
  /** Returns a stream, or calls back with an error or a stream, in the manner of `http.Agent`. */
  createConnection?(options: never, callback: never): unknown
}

/** An endpoint, taken apart and checked: what a transport dials. Holds no credentials. */
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

/** What dialling gets besides the target. */
export interface DialOptions {
  /** Aborts the attempt; a stream that opened meanwhile is destroyed. */
  readonly signal: AbortSignal
  /** Bytes of the largest packet; one incoming unit (a WebSocket message) may have four times as many. Default: the transport's own. */
  readonly maximumPacketSize?: number | undefined
}

/** Opens a stream to a target. Rejects with the platform's own error, which the caller wraps; rejects with the signal's reason when aborted. */
export type Dial = (target: Target, options: DialOptions) => Promise<Transport>
