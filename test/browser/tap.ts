/** A WebSocket listener in front of a broker's: it passes everything on, notes the packets of the clients, and can be told to break a link. */

import { createServer } from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
import { Decoder } from '../../src/wire/decode.js'
import type { Packet } from '../../src/wire/packets.js'
import { listening } from '../support/servers.js'

/** One connection of a client. */
export class Link {
  /** What the client sent, oldest first. */
  readonly packets: Packet[] = []
  /** Close code that the client's side ended with; undefined while it is open. */
  closed: number | undefined
  #silent = false
  readonly #near: WebSocket
  readonly #far: WebSocket

  constructor(near: WebSocket, brokerUrl: string) {
    const decoder = new Decoder({ protocolVersion: 5, from: 'client' })
    const waiting: Buffer[] = []
    this.#near = near
    this.#far = new WebSocket(brokerUrl, 'mqtt', { perMessageDeflate: false })
    near.on('message', (bytes: Buffer) => {
      this.packets.push(...decoder.push(bytes))
      if (this.#silent) return
      if (this.#far.readyState === WebSocket.OPEN) this.#far.send(bytes)
      else waiting.push(bytes)
    })
    this.#far.on('open', () => {
      for (const bytes of waiting.splice(0)) this.#far.send(bytes)
    })
    this.#far.on('message', (bytes: Buffer) => {
      if (!this.#silent) near.send(bytes)
    })
    near.on('close', (code) => {
      this.closed = code
      this.#far.terminate()
    })
    this.#far.on('close', () => {
      if (!this.#silent) near.terminate()
    })
    for (const socket of [near, this.#far]) socket.on('error', () => undefined)
  }

  /** How many packets of this type came. */
  count(type: Packet['type']): number {
    return this.packets.filter((packet) => packet.type === type).length
  }

  /** Passes nothing on any more, and tells nobody: what was a connection is a black hole. */
  silence(): void {
    this.#silent = true
  }

  /** Cuts both sides. */
  cut(): void {
    this.#near.terminate()
    this.#far.terminate()
  }
}

/** A running listener. */
export class Tap {
  /** Every connection that was made, oldest first. */
  readonly links: Link[] = []
  readonly url: string
  readonly #stop: () => Promise<void>

  private constructor(url: string, stop: () => Promise<void>) {
    this.url = url
    this.#stop = stop
  }

  static async before(brokerUrl: string): Promise<Tap> {
    const server = createServer()
    const sockets = new WebSocketServer({ server, perMessageDeflate: false })
    const port = await listening(server)
    const tap = new Tap(`ws://127.0.0.1:${port}`, async () => {
      for (const link of tap.links) link.cut()
      await new Promise((resolve) => server.close(resolve))
    })
    sockets.on('connection', (socket) => tap.links.push(new Link(socket, brokerUrl)))
    return tap
  }

  /** Connections that are open. */
  get open(): Link[] {
    return this.links.filter((link) => link.closed === undefined)
  }

  /** CONNECT packets over all connections. */
  get connects(): number {
    return this.links.reduce((sum, link) => sum + link.count('connect'), 0)
  }

  stop(): Promise<void> {
    return this.#stop()
  }
}
