/**
 * The worlds in real time: the broker of `mqwire/testing` over TCP, and mosquitto, each behind links that can be cut, stalled and slow.
 *
 * One broker serves many programs at a time: each has topics and client identifiers of its own, and links of its own. An observer that is connected directly
 * sees what the broker took. It must leave no process, port or file behind.
 */
import { createServer, type Server } from 'node:net'
import type { BaseClient } from '../../../src/client/client.js'
import { Client, connect } from '../../../src/client/node.js'
import type { ClientOptions, Endpoint } from '../../../src/client/public.js'
import { MemoryBroker } from '../../../src/testing/node.js'
import { startMosquitto } from '../../real/brokers.js'
import { ShapedLink } from '../../real/programs/shaped-link.js'
import { listening } from '../../support/servers.js'
import { History, type Taken } from './history.js'
import { nameIn, wrongIn } from './naming.js'
import { Performer } from './perform.js'
import type { EndpointName, Program } from './program.js'
import { type Place, refusal, underWatch, VirtualWorld, type World, type WorldName } from './worlds.js'

/** A broker that listens. */
interface Site {
  readonly url: string
  stop(): Promise<void>
}

/** Starts a world. */
export async function startWorld(name: WorldName): Promise<World> {
  if (name === 'virtual') return new VirtualWorld()
  return SocketWorld.start(name, name === 'tcp' ? await memory() : await mosquitto())
}

async function memory(): Promise<Site> {
  const more = { start: () => ({ reasonCode: 0x18, data: new TextEncoder().encode('more') }), continue: () => ({ reasonCode: 0 }) }
  const broker = new MemoryBroker({ auth: { finder: more }, maxQueuedMessages: 100_000, maxLog: 100, maxLogBytes: 1_000_000 })
  const { urls } = await broker.serve({ tcp: { port: 0, host: '127.0.0.1' } })
  return { url: urls[0] ?? '', stop: () => broker.close() }
}

async function mosquitto(): Promise<Site> {
  const broker = await startMosquitto({ lines: ['max_queued_messages 0', 'max_inflight_messages 0'] })
  return { url: broker.urls.TCP ?? '', stop: () => broker.stop() }
}

type Strange = 'silent' | 'busy' | 'banned'
type StrangePeers = ReadonlyMap<Strange, { readonly server: Server; readonly port: number }>

/** What the observer saw: messages by the prefix of their run. */
type Seen = Map<string, { readonly topic: string; readonly payload: Uint8Array; readonly taken: Omit<Taken, 'name' | 'wrong' | 'topic'> }[]>

/** A world over sockets. */
class SocketWorld implements World {
  readonly name: WorldName
  readonly #site: Site
  readonly #observer: Client
  readonly #seen: Seen
  readonly #strange: StrangePeers
  #runs = 0

  private constructor(name: WorldName, site: Site, observer: Client, seen: Seen, strange: StrangePeers) {
    this.name = name
    this.#site = site
    this.#observer = observer
    this.#seen = seen
    this.#strange = strange
  }

  static async start(name: WorldName, site: Site): Promise<SocketWorld> {
    const seen: Seen = new Map()
    const observer = await connect(site.url, { receiveMaximum: 65_535, maximumPacketSize: 16 * 1024 * 1024 })
    await observer.listen(
      'f/#',
      ({ topic, payload, qos, retain, properties }) => {
        const prefix = topic.slice(0, topic.indexOf('/', 2) + 1)
        seen.get(prefix)?.push({ topic: topic.slice(prefix.length), payload, taken: { qos, retain, properties: { ...properties }, will: false } })
      },
      { qos: 2, retainAsPublished: true, retainHandling: 2 },
    )
    const strange = new Map<Strange, { readonly server: Server; readonly port: number }>()
    for (const each of ['silent', 'busy', 'banned'] as const) {
      const server = strangeServer(each)
      strange.set(each, { server, port: await listening(server) })
    }
    return new SocketWorld(name, site, observer, seen, strange)
  }

  async run(program: Program): Promise<History> {
    const history = new History(program)
    this.#runs += 1
    const prefix = `f/${this.#runs}/`
    this.#seen.set(prefix, [])
    const { rate } = program.link
    const port = Number(new URL(this.#site.url).port)
    const links = await Promise.all(program.clients.map(() => ShapedLink.start({ port, ...(rate === undefined ? {} : { up: rate * 1000 }) })))
    try {
      const place = new SocketPlace(this.name, prefix, program, links, this.#strange, () => this.#taken(prefix, program))
      return await underWatch(history, () => new Performer(program, place, history).run())
    } finally {
      this.#seen.delete(prefix)
      await Promise.all(links.map((link) => link.stop()))
    }
  }

  async stop(): Promise<void> {
    await this.#observer.disconnect()
    for (const { server } of this.#strange.values()) server.close()
    await this.#site.stop()
  }

  // What the broker took before this message, the observer has got before it.
  async #taken(prefix: string, program: Program): Promise<readonly Taken[]> {
    const messages = this.#seen.get(prefix) ?? []
    await new Promise((resolve) => setTimeout(resolve, 80))
    for (const qos of [0, 1, 2] as const) await this.#observer.publish(`${prefix}end/${qos}`, '', { qos })
    const ends = (): number => messages.filter(({ topic }) => topic.startsWith('end/')).length
    for (let tries = 0; ends() < 3 && tries < 200; tries++) await new Promise((resolve) => setTimeout(resolve, 10))
    return messages
      .filter(({ topic }) => !topic.startsWith('end/'))
      .map(({ topic, payload, taken }) => {
        const name = nameIn(`f/${topic}`, payload)
        return { ...taken, topic, name, wrong: wrongIn(program, name, payload) }
      })
  }
}

/** The links and ports of one run. */
class SocketPlace implements Place {
  readonly world: WorldName
  readonly prefix: string
  readonly #program: Program
  readonly #links: readonly ShapedLink[]
  readonly #strange: ReadonlyMap<Strange, { readonly port: number }>
  readonly #taken: () => Promise<readonly Taken[]>
  readonly #began = performance.now()

  constructor(
    world: WorldName,
    prefix: string,
    program: Program,
    links: readonly ShapedLink[],
    strange: ReadonlyMap<Strange, { readonly port: number }>,
    taken: () => Promise<readonly Taken[]>,
  ) {
    this.world = world
    this.prefix = prefix
    this.#program = program
    this.#links = links
    this.#strange = strange
    this.#taken = taken
  }

  now(): number {
    return Math.round(performance.now() - this.#began)
  }

  timer(callback: () => void, delay: number): () => void {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  }

  endpoint(client: number, name: EndpointName): Endpoint {
    const port = this.#links[client]?.port ?? 1
    if (name === 'good') return `mqtt://127.0.0.1:${port}`
    if (name === 'other') return `tcp://127.0.0.1:${port}`
    if (name === 'late') return `mqtt://localhost:${port}`
    if (name === 'dead') return 'mqtt://127.0.0.1:1'
    // Nothing but a peer that says nothing is as good as a dial that never ends.
    return `${name === 'hang' ? 'tcp' : 'mqtt'}://127.0.0.1:${this.#strange.get(name === 'hang' ? 'silent' : name)?.port ?? 1}`
  }

  nameOf(url: string): EndpointName {
    const { protocol, hostname, port } = new URL(url)
    const strange = [...this.#strange].find(([, each]) => each.port === Number(port))?.[0]
    if (strange !== undefined) return strange === 'silent' && protocol === 'tcp:' ? 'hang' : strange
    if (port === '1') return 'dead'
    return hostname === 'localhost' ? 'late' : protocol === 'tcp:' ? 'other' : 'good'
  }

  client(_index: number, endpoints: readonly Endpoint[], options: ClientOptions): BaseClient {
    return new Client(endpoints, options)
  }

  cut(client: number): void {
    this.#links[client]?.cut()
  }

  stall(client: number, duration: number): void {
    const link = this.#links[client]
    link?.stall()
    setTimeout(() => link?.goOn(), duration)
  }

  // Who dials meanwhile is let in and gets no answer.
  down(duration: number): void {
    for (const [index, link] of this.#links.entries()) {
      link.cut()
      this.stall(index, duration)
    }
  }

  heal(): void {
    for (const link of this.#links) link.goOn()
  }

  async taken(): Promise<readonly Taken[]> {
    const taken = await this.#taken()
    for (let tries = 0; this.left().length > 0 && tries < 200; tries++) await new Promise((resolve) => setTimeout(resolve, 10))
    return taken
  }

  left(): readonly string[] {
    const open = this.#links.reduce((sum, link) => sum + link.open, 0)
    return open > 0 && this.#program.link.rate === undefined ? [`${open} streams`] : []
  }
}

// A peer that refuses each CONNECT, or says nothing.
function strangeServer(name: Strange): Server {
  return createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      if (name !== 'silent') socket.end(refusal(bytes, name))
    })
    // It ends with the client.
    socket.on('end', () => socket.destroy()).unref()
  })
}
