/**
 * What attaches to a client without any part of it knowing more than this. Types only.
 *
 * An extra is made with the client's context, and sees no other part. Each member is called at one place; those that are left out cost nothing.
 */
import type { MqttError } from '../../errors.js'
import type { AuthPacket, ConnackPacket, Properties } from '../../wire/packets.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { AuthContext } from '../options/index.js'

/** Enhanced authentication, the renewal of credentials, and whatever comes. */
export interface Extra {
  /** CONNECT is about to be made: gives properties for it. What it rejects with ends the attempt. */
  begin?(context: AuthContext): Promise<Properties>
  /** The transport is open: CONNECT leaves once this has fulfilled, at once where it is undefined. `handshake` rejects where no CONNACK says yes. */
  open?(handshake: Promise<void>): Promise<void> | undefined
  /** CONNACK came, and counts once this has fulfilled: at once where it is undefined. What it rejects with ends the connection. */
  verify?(packet: ConnackPacket): Promise<void> | undefined
  /** AUTH came (section 3.15). */
  handleAuth?(packet: AuthPacket): void
  /** An attempt has led to a connection: at which endpoint, and with what credentials of a function. */
  handleUp?(endpoint: ParsedEndpoint, login: Login | undefined): void
  /** The connection is over, or the client. */
  handleLost?(error: MqttError): void
}
