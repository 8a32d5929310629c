/**
 * A scripted server for the questions of `versus-features.js`: it takes what a client sends, notes it, and answers as the question wants. It is written
 * over sockets and the codec alone, so that no client's own machinery stands on both sides.
 */
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { Decoder, encode } from 'mqwire/wire'
import { relayTo } from '../peers/relay.js'

const usual = {
  connect: (_packet, link) =>
    link.send({
      type: 'connack',
      sessionPresent: link.number > 1 && !link.clean,
      reasonCode: 0,
      properties: link.properties,
    }),
  subscribe: ({ packetId, subscriptions }, link) => {
    const reasonCodes = subscriptions.map(({ qos }) => qos)
    link.send({ type: 'suback', packetId, reasonCodes })
  },
  unsubscribe: ({ packetId, filters }, link) =>
    link.send({ type: 'unsuback', packetId, reasonCodes: filters.map(() => 0) }),
  pingreq: (_packet, link) => link.send({ type: 'pingresp' }),
  publish: ({ qos, packetId }, link) => qos === 1 && link.send({ type: 'puback', packetId }),
}

/** One connection. */
class Link {
  version = 5
  clean = true
  constructor(socket, number, properties) {
    this.socket = socket
    this.number = number
    this.properties = properties
    this.at = performance.now()
  }

  send(packet) {
    const { properties, ...rest } = packet
    const plain = this.version === 5 && properties !== undefined ? packet : rest
    this.socket.write(encode(plain, { protocolVersion: this.version }))
  }

  raw(bytes) {
    this.socket.write(bytes)
  }
}

/**
 * Starts it. `answers` replaces what it does with a type of packet; `properties` are those of CONNACK. Gives the URLs, every packet that came with its
 * link and time, and the links.
 */
export async function scripted({ answers = {}, properties } = {}) {
  const packets = []
  const links = []
  const sockets = new Set()
  const act = { ...usual, ...answers }
  const tcp = createTcpServer((socket) => {
    const link = new Link(socket, links.length + 1, properties)
    const decoders = [5, 4].map(
      (protocolVersion) => new Decoder({ from: 'client', protocolVersion }),
    )
    let decoder
    links.push(link)
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (bytes) => {
      try {
        // The protocol level stands in the ninth byte at the latest of what a client sends first.
        decoder ??= decoders[levelOf(bytes) === 5 ? 0 : 1]
        for (const packet of decoder.push(bytes)) {
          if (packet.type === 'connect') {
            link.version = packet.protocolVersion
            link.clean = packet.cleanStart ?? packet.clean ?? true
          }
          packets.push({ ...packet, link, at: performance.now() })
          act[packet.type]?.(packet, link)
        }
      } catch {
        socket.destroy()
      }
    })
  })
  await new Promise((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const http = createServer()
  relayTo(tcp.address().port, http)
  await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    packets,
    links,
    urls: {
      tcp: `mqtt://127.0.0.1:${tcp.address().port}`,
      ws: `ws://127.0.0.1:${http.address().port}/mqtt`,
    },
    of: (type) => packets.filter((packet) => packet.type === type),
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      http.closeAllConnections()
      http.close()
      tcp.close()
    },
  }
}

/** The protocol level of a CONNECT. */
function levelOf(bytes) {
  let at = 1
  while ((bytes[at] & 0x80) !== 0) at++
  const length = (bytes[at + 1] << 8) | bytes[at + 2]
  return bytes[at + 3 + length]
}
