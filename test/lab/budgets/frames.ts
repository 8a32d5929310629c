/** WebSocket as a hostile server speaks it (RFC 6455), by hand. It trusts the client to frame correctly. */
import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'

/** What can be odd about a frame. */
export interface FrameOptions {
  /** Default 2, binary. */
  readonly opcode?: number
  /** Default true: no fragment follows. */
  readonly final?: boolean
  /** Says that the payload is compressed. */
  readonly compressed?: boolean
}

/** One frame, unmasked as a server's frames are. */
export function dataFrame(
  payload: Uint8Array,
  { opcode = 2, final = true, compressed = false }: FrameOptions = {},
): Buffer {
  const size = payload.length
  const header = size < 126 ? Buffer.alloc(2) : size < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10)
  header[0] = (final ? 0x80 : 0) | (compressed ? 0x40 : 0) | opcode
  header[1] = header.length === 2 ? size : header.length === 4 ? 126 : 127
  if (header.length === 4) header.writeUInt16BE(size, 2)
  if (header.length === 10) header.writeBigUInt64BE(BigInt(size), 2)
  return Buffer.concat([header, payload])
}

/** Reads the client's frames; gives the payload of binary ones. */
export class FrameReader {
  readonly #give: (bytes: Buffer) => void
  #rest: Buffer = Buffer.alloc(0)

  constructor(give: (bytes: Buffer) => void) {
    this.#give = give
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    while (this.#next());
  }

  #next(): boolean {
    const bytes = this.#rest
    if (bytes.length < 2) return false
    const short = (bytes[1] as number) & 127
    const extended = short === 126 ? 2 : short === 127 ? 8 : 0
    const start = 2 + extended + 4
    if (bytes.length < start) return false
    const size =
      extended === 2
        ? bytes.readUInt16BE(2)
        : extended === 8
          ? Number(bytes.readBigUInt64BE(2))
          : short
    if (bytes.length < start + size) return false
    const mask = bytes.subarray(start - 4, start)
    const payload = Buffer.from(bytes.subarray(start, start + size))
    for (let at = 0; at < size; at++)
      payload[at] = (payload[at] as number) ^ (mask[at & 3] as number)
    this.#rest = bytes.subarray(start + size)
    const opcode = (bytes[0] as number) & 15
    if (opcode === 2 || opcode === 0) this.#give(payload)
    return true
  }
}

/** Answers the handshake on a fresh socket; gives the request once it has come. `extra` are header lines of the answer. */
export function shake(socket: Socket, extra = ''): Promise<string> {
  return new Promise((resolve) => {
    let request = ''
    const read = (bytes: Buffer): void => {
      request += bytes.toString('latin1')
      if (!request.includes('\r\n\r\n')) return
      socket.off('data', read)
      const key = /sec-websocket-key: *(\S+)/i.exec(request)?.[1] ?? ''
      const accept = createHash('sha1')
        .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64')
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: mqtt\r\n' +
          `Sec-WebSocket-Accept: ${accept}\r\n${extra}\r\n`,
      )
      resolve(request)
    }
    socket.on('data', read)
  })
}
