/** A server that answers every CONNECT in one way, and no other packet. Nothing of mqwire is used here. */
import { createServer } from 'node:net'
import { closed, listening } from '../../support/servers.js'
import { atEnd } from './world.js'

/** What else it does. */
export interface Manners {
  /** Sent behind CONNACK. */
  readonly behind?: Uint8Array
  /** Ends the connection, in place of an answer. */
  readonly hangUp?: boolean
}

/** Starts one. `code` is that of CONNACK; undefined: no answer. */
export async function refusing(
  code: number | undefined,
  { behind, hangUp = false }: Manners = {},
): Promise<{ readonly url: string; count(): number }> {
  let count = 0
  const sockets = new Set<{ destroy(): unknown }>()
  const server = createServer((socket) => {
    count += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', (bytes) => {
      if (hangUp) socket.destroy()
      if (code === undefined || hangUp) return
      // The protocol level stands behind the name.
      const isFive = bytes.indexOf(Buffer.from([0x4d, 0x51, 0x54, 0x54, 5])) >= 0
      socket.write(isFive ? Uint8Array.of(0x20, 3, 0, code, 0) : Uint8Array.of(0x20, 2, 0, code))
      if (behind !== undefined) socket.write(behind)
      if (code !== 0) socket.end()
    })
  })
  const port = await listening(server)
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    return closed(server)
  })
  return { url: `mqtt://127.0.0.1:${port}`, count: () => count }
}
