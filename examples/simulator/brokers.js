/**
 * The two brokers that a fleet may talk to: one in memory, in this page and with no network at all, or a real one behind a WebSocket.
 *
 * Both dial through links that can be broken. What only a broker of our own can do (refuse, restart, forget) is `undefined` for a real one.
 */
import { MemoryBroker } from 'mqwire/testing'
import { dialWebSocket } from 'mqwire/transport/websocket'
import { Links } from './links.js'

/** How a line in memory behaves, by the name that the page shows: latency in milliseconds each way, and the most bytes that arrive at once. */
export const lines = {
  direct: {},
  '20 ms': { latency: 20 },
  '200 ms': { latency: 200 },
  '20 ms, in pieces of 7 bytes': { latency: 20, split: 7 },
}

const acknowledgements = ['puback', 'pubrec', 'pubcomp']
const notAuthorized = 0x87
const keepAliveTimeout = 0x8d

/** A broker in memory. `clock` is for tests; without one, time is real. */
export function memoryBroker({ clock } = {}) {
  const links = new Links()
  let line = {}
  let down = false
  let refusing = false
  let isRefused = () => true
  let violations = 0
  const forgotten = new Set()
  const broker = new MemoryBroker({
    clock,
    // The consumer may be away for a while; what waits for it is not to be dropped. The log of the broker is for tests.
    maxQueuedMessages: 1_000_000,
    maxQueuedBytes: 256 * 1024 * 1024,
    maxLog: 0,
    authenticate: ({ clientId }) => (refusing && isRefused(clientId) ? notAuthorized : true),
    intercept(direction, packet) {
      if (direction !== 'in' || packet.type !== 'connect' || !forgotten.delete(packet.clientId))
        return undefined
      // A session that nobody has asked for is the same as one that was forgotten.
      return { ...packet, cleanStart: true }
    },
  })
  broker.on('violation', ({ reasonCode }) => {
    // The silence of a link that was made silent is not the client's.
    if (reasonCode !== keepAliveTimeout) violations += 1
  })
  return {
    name: 'MemoryBroker, in this page',
    isInMemory: true,
    /** Devices beyond so many share connections. */
    mostLinks: Number.POSITIVE_INFINITY,
    url: 'mqtt://memory',
    links,
    async dial(owner, { signal } = {}) {
      signal?.throwIfAborted()
      if (down) throw Object.assign(new Error('The broker is down'), { code: 'ECONNREFUSED' })
      return links.add(broker.connect(line), owner)
    },
    /** How lines behave that are dialled from now on. */
    setLine(name) {
      line = lines[name] ?? {}
    },
    /** Refuses whoever connects with one of these client ids, until it is called with false. */
    refuse(on, clientIds = () => true) {
      refusing = on
      isRefused = clientIds
    },
    /** Ends as a process that dies: all connections are cut, what it knows is on disk. */
    goDown() {
      down = true
      broker.restart({ keepSessions: true })
    },
    comeBack() {
      down = false
    },
    /** Forgets the sessions of these clients: they find that out when they connect. */
    forget(clientIds) {
      for (const clientId of clientIds) forgotten.add(clientId)
    },
    /** Cuts each connection right before an acknowledgement leaves, until the function that it gives is called. */
    cutAcknowledgements() {
      const removals = acknowledgements.map((packet) =>
        broker.faults.add({ packet, direction: 'out', nth: 'every', action: 'close-before' }),
      )
      return () => {
        for (const remove of removals) remove()
      }
    },
    /** Rules of MQTT that a client broke. */
    get violations() {
      return violations
    },
    close: () => broker.close(),
  }
}

/** Connections of devices over real WebSockets. Firefox opens 200 in all, Chromium 255 to a host; the consumer has one, and who takes over another. */
export const mostWebSockets = 190

/** A real broker. The page's own WebSocket connects to it. */
export function webSocketBroker(url) {
  const links = new Links()
  const address = new URL(url)
  // The client sends what stands before the @; the handshake has no use for it.
  Object.assign(address, { username: '', password: '' })
  const target = { url: address, tls: {}, socket: {}, headers: {}, protocols: ['mqtt'] }
  return {
    name: `${address.protocol}//${address.host}${address.pathname}`,
    isInMemory: false,
    mostLinks: mostWebSockets,
    url,
    links,
    async dial(owner, options) {
      return links.add(await dialWebSocket(target, options), owner)
    },
    violations: undefined,
    close() {},
  }
}
