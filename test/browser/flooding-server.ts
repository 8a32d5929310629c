/**
 * A server that says yes to CONNECT and SUBSCRIBE, and then sends what it is told to, as fast as it can: no broker stands in between.
 */
import { createServer } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import { Decoder } from '../../src/wire/decode.js'
import { encode } from '../../src/wire/encode.js'
import { listening } from '../support/servers.js'

/** A running server. */
export interface Flooding {
  readonly url: string
  /** Publishes at QoS 0 to everybody who is there. */
  send(messages: Iterable<readonly [topic: string, payload: string]>): void
  stop(): Promise<void>
}

function greet(socket: WebSocket): void {
  const decoder = new Decoder({ protocolVersion: 5, from: 'client' })
  socket.on('message', (bytes: Buffer) => {
    for (const packet of decoder.push(bytes)) {
      if (packet.type === 'connect')
        socket.send(encode({ type: 'connack', reasonCode: 0, sessionPresent: false }))
      if (packet.type === 'subscribe')
        socket.send(encode({ type: 'suback', packetId: packet.packetId, reasonCodes: [0] }))
    }
  })
}

/** Starts one. */
export async function startFlooding(): Promise<Flooding> {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', greet)
  const port = await listening(server)
  return {
    url: `ws://127.0.0.1:${port}`,
    send(messages) {
      const packets = Array.from(messages, ([topic, text]) =>
        encode({ type: 'publish', topic, payload: new TextEncoder().encode(text) }),
      )
      for (const socket of sockets.clients) socket.send(Buffer.concat(packets))
    },
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
