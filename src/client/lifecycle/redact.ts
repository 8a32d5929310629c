/**
 * Packets as those who watch may see them: without what proves who we are.
 */
import type { Packet, Properties } from '../../wire/packets.js'

/** A copy without credentials and authentication data. */
export function redacted(packet: Packet): Packet {
  const { properties } = packet as { readonly properties?: Properties }
  const copy =
    properties?.authenticationData === undefined
      ? { ...packet }
      : ({ ...packet, properties: { ...properties, authenticationData: undefined } } as Packet)
  return copy.type === 'connect'
    ? { ...copy, username: copy.username && '[redacted]', password: undefined }
    : copy
}
