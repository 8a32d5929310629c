/** Reads what a client says, as short words: `connect`, `publish 2`, `pubrel 2 00`, `auth 18`, `disconnect 82`. */
import { type PacketName, typeNumbers } from '../facts.js'

const names = new Map<number, PacketName>(
  Object.entries(typeNumbers).map(([name, type]) => [type, name as PacketName]),
)
const digits = (byte: number): string => byte.toString(16).padStart(2, '0')

export class Hearing {
  #held: number[] = []

  /** The words that these bytes complete. */
  push(bytes: Uint8Array): string[] {
    for (const byte of bytes) this.#held.push(byte)
    const words: string[] = []
    for (let word = this.#next(); word !== undefined; word = this.#next())
      if (word !== 'pingreq') words.push(word)
    return words
  }

  /** Bytes of an incomplete packet. */
  get pending(): number {
    return this.#held.length
  }

  #next(): string | undefined {
    let length = 0
    let body = 1
    for (let shift = 0; ; shift += 7) {
      const byte = this.#held[body++]
      if (byte === undefined) return undefined
      length += (byte & 127) * 2 ** shift
      if (byte < 128) break
    }
    if (this.#held.length < body + length) return undefined
    const packet = this.#held.splice(0, body + length)
    return wordFor(packet[0] as number, packet.slice(body))
  }
}

function wordFor(first: number, body: readonly number[]): string {
  const name = names.get(first >> 4) ?? 'reserved'
  const u16 = (at: number): number => (body[at] as number) * 256 + (body[at + 1] as number)
  switch (name) {
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp':
      return `${name} ${u16(0)} ${digits(body[2] ?? 0)}`
    case 'publish':
      return (first & 6) === 0 ? name : `${name} ${u16(2 + u16(0))}`
    case 'subscribe':
    case 'unsubscribe':
      return `${name} ${u16(0)}`
    case 'auth':
    case 'disconnect':
      return `${name} ${digits(body[0] ?? 0)}`
    default:
      return name
  }
}
