/** Names of the events of a client: of all but `packet`, which comes for every packet and costs time, and `invalid`, which is of typed topics. */
import type { ClientEvents } from '../../../src/client/options/index.js'

const told: Readonly<Record<Exclude<keyof ClientEvents, 'packet' | 'invalid'>, true>> = {
  state: true,
  dial: true,
  reconnecting: true,
  connect: true,
  connecterror: true,
  disconnect: true,
  serverdisconnect: true,
  sessionlost: true,
  recovered: true,
  storecorrupt: true,
  drop: true,
  stalled: true,
  late: true,
  unclaimed: true,
  error: true,
}

export const eventNames = Object.keys(told) as readonly (keyof typeof told)[]
