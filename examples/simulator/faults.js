/**
 * What can be done to a fleet, by name: each fault has a label, an explanation, and a deed that gives how long it lasts.
 *
 * Faults of links work over any broker; those that need a broker of our own are told apart by `needsMemory`.
 */

/** Milliseconds. */
const stallTime = 2000
const refusalTime = 2000
const downTime = 2000
const cuttingTime = 1000
/** Keep-alive and ping timeout of the devices, and a little. */
const noticedWithin = 6000

const everybody = (fleet) => fleet.devices.filter(({ isRunning }) => isRunning)
const oneInTen = (fleet, which) => everybody(fleet).filter(({ index }) => index % 10 === which)
const owners = (devices) => {
  const clientIds = new Set(devices.map(({ clientId }) => clientId))
  return (owner) => clientIds.has(owner)
}

/** The faults, in the order of their buttons. `begin(fleet)` may give a function that ends it, which is called after `lasts` milliseconds. */
export const faults = {
  cutAll: {
    label: 'Drop all links',
    about: 'Cuts every device’s connection at the same moment.',
    begin: (fleet) => void fleet.broker.links.cut(owners(everybody(fleet))),
  },
  cutSome: {
    label: 'Drop one in ten',
    about: 'Cuts the connections of every tenth device.',
    begin: (fleet) => void fleet.broker.links.cut(owners(oneInTen(fleet, 1))),
  },
  silence: {
    label: 'Silence one in ten',
    about:
      'Links of every tenth device become black holes: nothing comes, nothing goes, nobody is told. The keep-alive finds out within 6 seconds.',
    lasts: noticedWithin,
    begin: (fleet) => void fleet.broker.links.silence(owners(oneInTen(fleet, 3))),
  },
  stall: {
    label: 'Stall the broker',
    about: 'Nothing that the broker sends gets through for 2 seconds, then everything does.',
    lasts: stallTime,
    begin(fleet) {
      fleet.broker.links.stall(true)
      return () => fleet.broker.links.stall(false)
    },
  },
  takeOver: {
    label: 'Take over a client id',
    about:
      'Somebody else connects with the client identifier of one device, which is sent away with reason code 0x8E.',
    begin(fleet) {
      const [device] = everybody(fleet).filter(({ state }) => state === 'connected')
      if (device !== undefined) takeOver(fleet, device)
    },
  },
  refuse: {
    label: 'Refuse credentials',
    about:
      'Links of every tenth device drop, and for 2 seconds the broker lets none of them in (0x87).',
    needsMemory: true,
    lasts: refusalTime,
    begin(fleet) {
      const chosen = owners(oneInTen(fleet, 7))
      fleet.broker.refuse(true, chosen)
      fleet.broker.links.cut(chosen)
      return () => fleet.broker.refuse(false)
    },
  },
  restart: {
    label: 'Restart the broker',
    about:
      'The broker is gone for 2 seconds, the consumer’s connection too, and comes back with its sessions.',
    needsMemory: true,
    lasts: downTime,
    begin(fleet) {
      fleet.broker.goDown()
      return () => fleet.broker.comeBack()
    },
  },
  forget: {
    label: 'Lose the sessions',
    about:
      'Every device is cut off, and finds on return that the broker has forgotten its session.',
    needsMemory: true,
    begin(fleet) {
      const devices = everybody(fleet)
      fleet.broker.forget(devices.map(({ clientId }) => clientId))
      fleet.broker.links.cut(owners(devices))
    },
  },
  acknowledgements: {
    label: 'Cut at acknowledgements',
    about:
      'For a second, each connection is cut right before an acknowledgement: the message arrived, and the device cannot know.',
    needsMemory: true,
    lasts: cuttingTime,
    begin: (fleet) => fleet.broker.cutAcknowledgements(),
  },
}

/** Carries out faults, and ends them in time. */
export class Faults {
  #fleet
  // Running faults, each with what ends it.
  #running = new Map()

  constructor(fleet) {
    this.#fleet = fleet
  }

  /** Whether this broker can do it. */
  can(name) {
    return this.#fleet.broker.isInMemory || faults[name].needsMemory !== true
  }

  isRunning(name) {
    return this.#running.has(name)
  }

  /** Does it, unless it is being done. */
  begin(name) {
    const { label, lasts, begin } = faults[name]
    if (!this.can(name) || this.#running.has(name)) return
    this.#fleet.disturb(`fault: ${label.toLowerCase()}`, lasts)
    const end = begin(this.#fleet)
    if (end === undefined) return
    const cancel = this.#fleet.clock.setTimer(() => this.#end(name), lasts)
    this.#running.set(name, { cancel, end })
  }

  /** Ends what goes on. */
  endAll() {
    for (const name of [...this.#running.keys()]) this.#end(name)
  }

  #end(name) {
    const { cancel, end } = this.#running.get(name)
    this.#running.delete(name)
    cancel()
    end()
    this.#fleet.journal.note(`over: ${faults[name].label.toLowerCase()}`)
  }
}

/** Connects as a device, with its session, and leaves as soon as the broker let it in. */
export async function takeOver(fleet, device) {
  const { broker, makeClient } = fleet
  const intruder = makeClient(
    { url: broker.url, transport: (_endpoint, options) => broker.dial('intruder', options) },
    {
      ...fleet.credentialsOf(device.known),
      clientId: device.clientId,
      cleanStart: false,
      reconnect: false,
    },
  )
  try {
    await intruder.connect()
    await intruder.disconnect({ timeout: 0 })
  } catch (error) {
    fleet.journal.note(`taking over failed: ${error.code}`)
  }
}
