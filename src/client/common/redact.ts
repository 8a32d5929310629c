/**
 * Packets as those who watch may see them: without what proves who we are.
 */
import type { Packet } from '../../wire/packets.js'

/** A copy without credentials and authentication data. */
export function redacted(packet: Packet): Packet {
  if (packet.type !== 'connect' && packet.type !== 'auth' && packet.type !== 'connack') return { ...packet }
  const properties = { ...packet.properties, authenticationData: undefined }
  if (packet.type !== 'connect') return { ...packet, properties }
  return { ...packet, properties, username: packet.username && '[redacted]', password: undefined }
}
