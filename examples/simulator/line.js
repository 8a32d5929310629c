/**
 * A connection and the devices that use it. In memory each device has a line of its own; over WebSockets, of which browsers open some hundred and no more,
 * several devices share one: then they connect, break and come back together.
 *
 * It tells each of its devices what happens, and the journal once. Nothing here touches a page.
 */

/** Milliseconds for what is in flight, when the last device leaves, and between two looks for what another one has in flight. */
const stopWithin = 5000
const look = 50

/**
 * What a fleet asks of lost connections: to be made good quickly. A device in the field would leave takeover (0x8E) and refusals to the default
 * decisions, which stop; here they pass, and the fleet is to come back by itself.
 */
const passing = [0x86, 0x87, 0x8e]

/** One connection. `fleet` says where and how it is made: see `Fleet`. */
export class Line {
  client
  /** Devices that use it, those on their way out too. */
  devices = new Set()
  /** What the broker allows, once it was reached. */
  negotiated
  /** Its last devices are leaving: nobody can join. */
  isLeaving = false
  #fleet

  /** `device` is the first of its devices. */
  constructor(fleet, { clientId, plan, known }) {
    this.#fleet = fleet
    const { makeClient, broker, random } = fleet
    this.client = makeClient(
      {
        url: broker.url,
        transport: async (_endpoint, options) => {
          if (this.#isOffline) throw noNetwork()
          return broker.dial(clientId, options)
        },
      },
      {
        ...fleet.credentialsOf(known),
        clientId,
        // What comes is commands, which are short.
        ...(plan !== undefined && { maximumPacketSize: 65_536 }),
        ...(plan?.will && { will: willOf(plan) }),
        keepAlive: 3,
        pingTimeout: 2500,
        firstConnect: 'wait',
        // Quick, and never all at once: between half and one and a half of a delay that doubles up to 3 s.
        reconnect: {
          backoff: (attempt) => Math.min(3000, 250 * 2 ** Math.min(attempt, 5)) * (0.5 + random()),
          decide: ({ reasonCode }) => (passing.includes(reasonCode) ? 'retry' : undefined),
        },
      },
    )
    this.#watch()
    this.client.connect().catch(() => undefined)
  }

  join(device) {
    this.devices.add(device)
    if (device.plan?.commands.size > 0) this.#listen(device)
    if (this.client.state === 'connected') device.connected(this.negotiated)
    device.entered(this, this.client.state)
  }

  /** Lets a device go, with what it has in flight; the last one takes the connection along. */
  async leave(device) {
    const isLast = [...this.devices].every((other) => other === device || other.isStopping)
    if (isLast) {
      this.isLeaving = true
      if (this.#fleet.state === 'running') this.#fleet.failures.delete(this.client)
      await this.client.drain({ timeout: stopWithin })
    } else await this.#settled(device)
    this.devices.delete(device)
    if (!isLast) device.entered(this, 'closed')
  }

  get #isOffline() {
    return [...this.devices].some((device) => device.isOffline)
  }

  // What others ask of a device. It is subscribed again after each reconnect.
  #listen(device) {
    const topics = [...device.plan.commands.keys()]
    const take = (message) => device.command(message)
    this.client.listen(topics, take, { qos: 1, buffer: 100 }).catch((error) => {
      if (!this.isLeaving) this.#fail(error, 'commands cannot be read')
    })
  }

  #watch() {
    const { client } = this
    const { journal } = this.#fleet
    const each = (tell) => {
      for (const device of this.devices) tell(device)
    }
    client.on('state', ({ state }) => each((device) => device.entered(this, state)))
    client.on('connect', ({ negotiated }) => {
      this.negotiated = negotiated
      this.#fleet.failures.delete(client)
      each((device) => device.connected(negotiated))
    })
    client.on('reconnecting', () => each((device) => device.tries()))
    client.on('connecterror', ({ error }) => {
      if (this.#isOffline) return
      this.#fail(error, 'no connection')
      // A device that was there before comes back by itself.
      if (this.negotiated === undefined) this.#fleet.failures.add(client, 'device', error)
    })
    client.on('disconnect', ({ error }) => error && this.#fail(error, 'connection lost'))
    // What became of each publish stands in the ledger; without a listener the console would say it, too.
    client.on('drop', () => undefined)
    client.on('sessionlost', ({ republished, rejected }) => {
      journal.note('session lost by the broker')
      for (const _ of republished) journal.note('message published anew after a lost session')
      for (const _ of rejected)
        journal.note('message rejected after a lost session: it may have arrived')
    })
    client.closed.then((error) => {
      if (error === undefined || this.isLeaving) return
      this.isLeaving = true
      each((device) => device.ended(this))
      this.#fail(error, 'device ended')
      this.#fleet.failures.add(client, 'device', error)
    })
  }

  #fail(error, what) {
    const code = error.reasonName === undefined ? error.code : `${error.code}, ${error.reasonName}`
    this.#fleet.journal.note(`${what}: ${code}`)
    for (const device of this.devices) device.failed(code)
  }

  async #settled(device) {
    const { clock } = this.#fleet
    const end = clock.now() + stopWithin
    while (device.open > 0 && clock.now() < end && !this.isLeaving)
      await new Promise((resolve) => clock.setTimer(resolve, look))
  }
}

const willOf = ({ will: { topic, payload, qos, retain } }) => ({ topic, payload, qos, retain })

const noNetwork = () =>
  Object.assign(new Error('The scenario keeps the device off the network'), { code: 'ENETDOWN' })
