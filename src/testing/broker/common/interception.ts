/**
 * Calls the hook that sees every packet, in both directions.
 *
 * The result is checked only for being a packet of that direction; the encoder and the rules of the
 * session check the rest.
 */
import type { ClientPacket, ServerPacket } from '../../../wire/packets.js'
import { kindOf } from './check.js'
import type { BrokerClient } from './events.js'
import { ask, type Eventually } from './hooks.js'
import type { BrokerHooks } from './options.js'
import type { VerdictHost } from './verdicts.js'

/**
 * The packet to continue with; false when the hook discarded it, undefined when the hook failed.
 */
export type Intercepted<P> = P | false | undefined

/** The client of the packet. */
export interface Intercepting {
  readonly clientId: string
  readonly accepted: BrokerClient | undefined
}

const both = ['publish', 'puback', 'pubrec', 'pubrel', 'pubcomp', 'disconnect', 'auth']

const types: Readonly<Record<'in' | 'out', readonly string[]>> = {
  in: [...both, 'connect', 'subscribe', 'unsubscribe', 'pingreq'],
  out: [...both, 'connack', 'suback', 'unsuback', 'pingresp'],
}

/** Calls the hook with a packet. */
export function intercept<P extends ClientPacket | ServerPacket>(
  host: VerdictHost,
  hook: NonNullable<BrokerHooks['intercept']>,
  { clientId, accepted }: Intercepting,
  direction: 'in' | 'out',
  packet: P,
): Eventually<Intercepted<P>> {
  return ask<Intercepted<P>>(host, {
    hook: 'intercept',
    clientId,
    timeout: host.settings.hookTimeout,
    run: () => hook(direction, packet, accepted),
    read: (given) => given !== false && packetOf(direction, given ?? packet),
    failed: () => undefined,
  })
}

function packetOf<P>(direction: 'in' | 'out', given: unknown): P {
  const type =
    typeof given === 'object' && given !== null && 'type' in given ? given.type : undefined
  if (typeof type !== 'string' || !types[direction].includes(type))
    throw new TypeError(
      `${type === undefined ? kindOf(given) : 'that type'} is no packet for '${direction}'`,
    )
  return given as P
}
