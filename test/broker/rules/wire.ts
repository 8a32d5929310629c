/**
 * What the proofs of the server role share: bytes in, bytes out, on a scripted connection to the broker in memory.
 *
 * Assumes the raw client of `test/broker`, whose strict decoder already refuses an illegal packet of the broker. What a proof is about is
 * compared as hex, so that nothing of the codec stands between a statement and its bytes.
 */
import type { ServerPacket } from '../../../src/wire/index.js'
import type { RawClient } from '../raw-client.js'

/** `20 03 00` of bytes. */
export function hexOf(bytes: Iterable<number>): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
}

/** Bytes of `20 03 00`. */
export function bytesOf(hex: string): number[] {
  return (hex.match(/[0-9a-f]{2}/g) ?? []).map((byte) => Number.parseInt(byte, 16))
}

/** UTF-8 of a string with its length in front, as hex (section 1.5.4). */
export function textOf(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return hexOf([bytes.length >> 8, bytes.length & 0xff, ...bytes])
}

/** Properties of less than 128 bytes, with their length in front. */
export function propertiesOf(...properties: string[]): string {
  const bytes = bytesOf(properties.join(' '))
  return hexOf([bytes.length, ...bytes])
}

/** A packet from its first byte and its body, with the Remaining Length in the shortest form. */
export function packetOf(first: string, ...body: string[]): string {
  const bytes = bytesOf(body.join(' '))
  const length: number[] = []
  for (let rest = bytes.length; ; rest >>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest)
    if (rest <= 127) break
  }
  return hexOf([...bytesOf(first), ...length, ...bytes])
}

/**
 * A packet as it is, but for a CONNACK that refuses: without its Reason String, which is for people to read and may be left out (section 3.2.2.3.9).
 * What it says is shown in `test/broker/connect.test.ts`.
 */
function withoutReason(packet: readonly number[]): readonly number[] {
  const [type, , , code = 0, length = 0, property, high = 0, low = 0] = packet
  const size = 3 + (high << 8) + low
  // Lengths of one byte each: longer ones are left as they are.
  if (type !== 0x20 || code < 0x80 || property !== 0x1f || packet.length > 129 || size > length) return packet
  return [0x20, packet.length - 2 - size, 0, code, length - size, ...packet.slice(5 + size)]
}

/** Forgets the bytes that came; gives them as hex, one string a packet, a refusing CONNACK without its Reason String. */
export function heard(client: RawClient): string[] {
  return heardWhole(client).map((packet) => hexOf(withoutReason(bytesOf(packet))))
}

/** Forgets the bytes that came; gives them as hex, one string a packet. */
export function heardWhole(client: RawClient): string[] {
  const bytes = client.bytes.splice(0)
  const packets: string[] = []
  for (let at = 0; at < bytes.length; ) {
    let end = at + 1
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[end++] as number
      length += (byte & 127) << shift
      if (byte < 128) break
    }
    packets.push(hexOf(bytes.slice(at, end + length)))
    at = end + length
  }
  return packets
}

/** Sends hex in one write; gives what came since the last time. */
export async function say(client: RawClient, ...hex: string[]): Promise<string[]> {
  await client.sendBytes(...hex.map(bytesOf))
  return heard(client)
}

/** Sends hex one byte a write; beyond the first hundred bytes, a hundred a write. */
export async function drip(client: RawClient, hex: string): Promise<string[]> {
  const bytes = Uint8Array.from(bytesOf(hex))
  for (let at = 0; at < bytes.length; at += at < 100 ? 1 : 100) client.transport.write(bytes.slice(at, at < 100 ? at + 1 : at + 100))
  await client.sendBytes()
  return heard(client)
}

/** Every reason code that some packet has, and some that none has. */
export const someCodes: readonly number[] = [
  0,
  1,
  2,
  3,
  4,
  0x10,
  0x11,
  0x18,
  0x19,
  0x1a,
  0x7f,
  ...Array.from({ length: 0x24 }, (_none, at) => 0x80 + at),
  0xff,
]

/** Two digits. */
export function hexOfCode(code: number): string {
  return code.toString(16).padStart(2, '0')
}

/** Lets everything happen; gives the publishes that came since the last time. */
export async function publishesOf(client: RawClient): Promise<Extract<ServerPacket, { type: 'publish' }>[]> {
  const before = client.take()
  return [...before, ...(await client.sendBytes())].filter((packet) => packet.type === 'publish')
}

/** How a connection ended: the packets of the broker's last words, and whether it closed. */
export function endOf(client: RawClient): { readonly last: string | undefined; readonly closed: boolean } {
  return { last: heard(client).at(-1), closed: client.ended !== undefined }
}
