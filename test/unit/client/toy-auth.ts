/**
 * A toy mechanism of enhanced authentication, and the server's side of it, for tests of the driver.
 *
 * The mechanism answers every challenge with that challenge in angle brackets; the server asks as often as it is told.
 */
import type { AuthContext, AuthMechanism } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { agreeable } from './harness.js'

export const text = (value: Uint8Array | undefined): string | undefined =>
  value === undefined ? undefined : new TextDecoder().decode(value)
export const bytes = (value: string): ReturnType<Uint8Array['slice']> =>
  new TextEncoder().encode(value)

/** What the mechanism was called with, oldest first. */
export interface Toy {
  readonly auth: AuthMechanism
  readonly calls: {
    readonly name: string
    readonly data: string | undefined
    readonly context: AuthContext
  }[]
}

export function toy(overrides: Partial<AuthMechanism> = {}): Toy {
  const calls: Toy['calls'] = []
  const auth: AuthMechanism = {
    method: 'toy',
    start(context) {
      calls.push({ name: 'start', data: undefined, context })
      return 'hello'
    },
    continue(data, context) {
      calls.push({ name: 'continue', data: text(data), context })
      return `<${text(data)}>`
    },
    success(data, context) {
      calls.push({ name: 'success', data: text(data), context })
    },
    ...overrides,
  }
  return { auth, calls }
}

/** Asks these challenges after CONNECT, and after AUTH 0x19; then it is satisfied, with `bye` as its last word. */
export function asking(...challenges: string[]): Answer {
  let left: string[] = []
  let first = true
  const next = (): ReturnType<Answer> => {
    const challenge = left.shift()
    if (challenge !== undefined)
      return {
        type: 'auth',
        reasonCode: 0x18,
        properties: { authenticationMethod: 'toy', authenticationData: bytes(challenge) },
      }
    const properties = { authenticationMethod: 'toy', authenticationData: bytes('bye') }
    if (!first) return { type: 'auth', reasonCode: 0, properties }
    first = false
    return { type: 'connack', sessionPresent: false, reasonCode: 0, properties }
  }
  return (packet: ClientPacket) => {
    if (packet.type === 'connect' || (packet.type === 'auth' && packet.reasonCode === 0x19))
      left = [...challenges]
    return packet.type === 'connect' || packet.type === 'auth' ? next() : agreeable(packet)
  }
}
