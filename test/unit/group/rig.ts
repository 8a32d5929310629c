/** Two or three brokers in one virtual world, and groups over them. */
import type { CustomTransport } from '../../../src/client/options/index.js'
import { groupOf } from '../../../src/group/broker-group.js'
import type { Group, GroupOptions } from '../../../src/group/types.js'
import { MemoryBroker } from '../../../src/testing/broker/broker.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

/** What a promise came to: the code of its error, or that it fulfilled. */
export function endOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'fulfilled',
    (error: { code?: string; name: string }) => error.code ?? error.name,
  )
}

/** A world whose client identifiers decide which broker they reach: `x-<name>` reaches the broker of that name. Each broker has a reader. */
export class GroupRig {
  readonly world = new VirtualWorld()
  /** What arrived, by broker. */
  readonly arrived: Record<string, string[]> = {}
  /** Brokers that swallow what comes from the group, and what goes there, as a black hole does. */
  readonly hushed = new Set<string>()
  readonly brokers: Record<string, MemoryBroker> = {}

  /** Starts brokers, each with a reader of everything. */
  async start(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      const isHushed = (client: { readonly clientId: string } | undefined): boolean =>
        this.hushed.has(name) && client?.clientId !== 'reader'
      const broker = new MemoryBroker({
        clock: this.world.clock,
        // `not-NAME` is refused by the broker of that name, `never` by all.
        authorizeSubscribe: (_, { filter }) => filter !== `not-${name}` && filter !== 'never',
        intercept: (_, __, client) => (isHushed(client) ? false : undefined),
      })
      const texts: string[] = []
      this.brokers[name] = broker
      this.arrived[name] = texts
      const reader = new this.world.Client(
        { url: 'memory://b', transport: broker.dial },
        { clientId: 'reader' },
      )
      await reader.connect()
      await reader.listen('#', (message) => void texts.push(`${message.topic} ${message.text()}`))
    }
  }

  /** A group of members that reach these brokers by a link that `cut` cuts. */
  group(options: Omit<GroupOptions, 'members'> & { readonly names: readonly string[] }): Group {
    const { names, ...others } = options
    const members = Object.fromEntries(
      names.map((name) => [name, { url: 'memory://b', transport: this.link(name) }]),
    )
    return groupOf((at, given) => new this.world.Client(at, given), {
      shared: { clientId: 'g' },
      ...others,
      members,
    })
  }

  /** A connected group of these members, whose brokers are started. */
  async up(names: readonly string[], options: Omit<GroupOptions, 'members'> = {}): Promise<Group> {
    await this.start(...names.filter((name) => !(name in this.brokers)))
    const group = this.group({ names, ...options })
    await group.connect()
    return group
  }

  readonly #connections = new Map<string, { down: boolean; ends: Set<{ destroy(): void }> }>()

  /** A transport to a broker, over a link that can be cut. */
  link(name: string): CustomTransport {
    const link = { down: false, ends: new Set<{ destroy(): void }>() }
    this.#connections.set(name, link)
    return async (endpoint, options) => {
      if (link.down) throw new Error('no route')
      const transport = await (this.brokers[name] as MemoryBroker).dial(
        endpoint as never,
        options as never,
      )
      link.ends.add(transport)
      return transport
    }
  }

  /** Cuts the link to a broker; gives what mends it. */
  cut(name: string): () => void {
    const link = this.#connections.get(name)
    if (link === undefined) throw new Error(`no link to ${name}`)
    link.down = true
    for (const end of link.ends) end.destroy()
    link.ends.clear()
    return () => {
      link.down = false
    }
  }

  /** The same of several, which is noticed; gives what mends them. */
  async lose(...names: readonly string[]): Promise<() => void> {
    const mends = names.map((name) => this.cut(name))
    await this.world.pass(1)
    return () => mends.forEach((mend) => void mend())
  }

  async stop(): Promise<void> {
    await this.world.close()
    for (const broker of Object.values(this.brokers)) await broker.close()
  }
}
