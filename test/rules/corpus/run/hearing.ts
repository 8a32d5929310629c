/** What a client says, as short words: `connect`, `publish 2`, `pubrel 2 00`, `auth 18`, `disconnect 82`. PINGREQ is not worth a word. */
import { readPacket, type Seen, Splitter } from '../../../world/reader.js'

export class Hearing {
  readonly #splitter = new Splitter()
  #version = 5

  push(bytes: Uint8Array): string[] {
    return this.#splitter.push(bytes).flatMap((packet) => {
      // The level stands behind the length and the name.
      if (packet[0] === 0x10)
        this.#version = packet[packet.findIndex((byte, at) => at > 0 && byte < 128) + 7] ?? 5
      const seen = readPacket(packet, this.#version)
      return seen.kind === 'pingreq' ? [] : [wordFor(seen)]
    })
  }
}

function wordFor({ kind, id, qos, reason }: Seen): string {
  const code = reason.toString(16).padStart(2, '0')
  if (kind === 'publish') return qos === 0 ? kind : `${kind} ${id}`
  if (kind.startsWith('pub')) return `${kind} ${id} ${code}`
  if (kind.endsWith('subscribe')) return `${kind} ${id}`
  return kind === 'auth' || kind === 'disconnect' ? `${kind} ${code}` : kind
}
