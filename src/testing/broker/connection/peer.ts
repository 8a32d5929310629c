/**
 * The client of one connection, as the broker knows it. Data only, set by the handshake and the
 * packet handlers.
 */
import type { ConnectPacket, ProtocolVersion, Will } from '../../../wire/packets.js'
import type { BrokerClient } from '../common/events.js'
import type { BrokerAuthContext, BrokerAuthMethod } from '../common/options.js'
import type { SessionState } from '../state/session-state.js'
import { ClientView } from './client-view.js'

/** Number of first bytes kept, to find the version of a CONNECT that cannot be decoded. */
const headLength = 16

/** An enhanced authentication, pending or done. */
export interface AuthExchange {
  readonly methodName: string
  readonly method: BrokerAuthMethod
  context: BrokerAuthContext
  /** Which side has the next step: the hook, the client, or neither. */
  turn: 'broker' | 'client' | 'none'
}

/** See the file's comment. */
export class Peer {
  // valid for the connection
  /** The `remote` argument of `accept`. */
  readonly remote: string | undefined
  /** The client as tests and hooks see it. */
  readonly view: BrokerClient = new ClientView(this)
  state: 'new' | 'authenticating' | 'connected' = 'new'
  clientId = ''
  connect: ConnectPacket | undefined
  protocolVersion: ProtocolVersion = 5
  /** In force, in seconds; 0 is off. */
  keepAlive = 0
  session: SessionState | undefined
  /** The will to publish when the connection ends; undefined after DISCONNECT 0x00. */
  will: Will | undefined
  exchange: AuthExchange | undefined
  /** Topics by the client's alias [MQTT-3.3.2-7]. */
  readonly aliases = new Map<number, string>()
  /**
   * True once CONNACK, or its replacement by a fault, was sent: a DISCONNECT must not precede it
   * [MQTT-3.14.0-1].
   */
  welcomed = false
  /**
   * True once a fault has changed the order of packets: order violations no longer prove anything
   * about the client.
   */
  disturbed = false
  /** Bytes received. */
  bytesIn = 0
  /** Bytes of packets sent. */
  bytesOut = 0
  /** The first bytes received. */
  head: Uint8Array = new Uint8Array(0)

  constructor(remote: string | undefined) {
    this.remote = remote
  }

  /** The client; undefined until it is connected. */
  get accepted(): BrokerClient | undefined {
    return this.state === 'connected' ? this.view : undefined
  }

  /** Counts bytes and remembers the first ones. */
  count(bytes: Uint8Array): void {
    this.bytesIn += bytes.length
    if (this.head.length >= headLength) return
    const head = new Uint8Array(Math.min(headLength, this.head.length + bytes.length))
    head.set(this.head)
    head.set(bytes.subarray(0, headLength - this.head.length), this.head.length)
    this.head = head
  }
}
