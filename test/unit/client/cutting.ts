/**
 * A client of a small broker whose connections are cut after so many bytes, one after the other.
 *
 * The cut falls anywhere, also in the middle of a packet: the rest of what was written is lost, in both directions.
 */
import type { ClientOptions } from '../../../src/client/options/index.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { lasting } from './across.js'
import { World } from './harness.js'
import type { SmallBroker } from './small-broker.js'

/** Where connections are cut: after so many bytes towards the server, or towards the client; those without a place live on. */
export interface Cut {
  readonly forward?: number
  readonly backward?: number
}

/** A client of a small broker whose connections are cut, one after the other, as said. */
export function cutting(
  broker: SmallBroker,
  cuts: readonly Cut[],
  options: ClientOptions = {},
): World {
  let dials = 0
  const world: World = new World({ ...lasting, ...options }, {}, 1, () => {
    const { forward, backward } = cuts[dials++] ?? {}
    const [near, far] = memoryPair({
      schedule: (callback, delay) => world.clock.setTimer(callback, delay),
      ...(forward === undefined ? {} : { forward: { drop: forward } }),
      ...(backward === undefined ? {} : { backward: { drop: backward } }),
    })
    world.peers.push(new ScriptedPeer(far, 5, broker.answer))
    return near
  })
  return world
}
