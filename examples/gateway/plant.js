/**
 * The other end: a broker of `mqwire/testing`, and a reader that has a session at it.
 *
 * Where the network goes, the connections are cut and nobody can connect; the broker keeps its sessions, as one with a disk does.
 */
import { connect, exponential } from 'mqwire'
import { MemoryBroker } from 'mqwire/testing'

/** Make one with `Plant.open`. */
export class Plant {
  /** Where the gateway finds the broker, as long as there is a network. */
  url
  #broker = new MemoryBroker({ maxQueuedMessages: 1_000_000, maxLog: 0 })
  #reader
  #listeners
  #port

  /** Opens it, with a network; `read` is called with every reading that arrives. */
  static async open(read) {
    const plant = new Plant()
    await plant.networkComes()
    const reconnect = { backoff: exponential({ min: 50, max: 200 }) }
    plant.#reader = await connect(plant.url, {
      clientId: 'reader',
      sessionExpiryInterval: 86_400,
      reconnect,
    })
    await plant.#reader.listen('plant/#', (message) => read(message.json()), { qos: 2 })
    return plant
  }

  async networkComes() {
    this.#listeners = await this.#broker.serve({ tcp: this.#port ?? 0 })
    this.url = this.#listeners.tcp.url
    this.#port = this.#listeners.tcp.port
  }

  async networkGoes() {
    await this.#listeners.close()
  }

  async close() {
    await this.#reader.disconnect({ timeout: 1000 })
    await this.#broker.close()
  }
}
