/** The link drops in the middle of a packet of ours, at each of its bytes: each operation ends as it would have, had it been queued or whole. */
import { describe, expect, it } from 'vitest'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { carried, comeBack, frames, lasting, lose, willing } from './across.js'
import { World } from './harness.js'
import { subscribe } from './incoming.js'

interface Operation {
  readonly name: string
  /** What is there before. */
  prepare?(world: World): Promise<unknown>
  start(world: World): Promise<unknown>
  /** What the next connection carries: the session was kept, or lost. */
  readonly kept: readonly RegExp[]
  readonly lost: readonly RegExp[]
}

const publish = (qos: 0 | 1 | 2) => (world: World) => world.client.publish('t', 'text', { qos })
const request = (pattern: RegExp) => ({ kept: [pattern], lost: [pattern] })

const operations: Operation[] = [
  { name: 'QoS 0', start: publish(0), kept: [], lost: [] },
  {
    name: 'QoS 1',
    start: publish(1),
    kept: [/^publish t=text q1 #1 dup$/],
    lost: [/^publish t=text q1 #\d+$/],
  },
  {
    name: 'QoS 2',
    start: publish(2),
    kept: [/^publish t=text q2 #1 dup$/, /^pubrel #1$/],
    lost: [],
  },
  {
    name: 'subscribe',
    start: ({ client }) => client.subscribe('a/b', { qos: 1 }),
    ...request(/^subscribe a\/b #\d+$/),
  },
  {
    name: 'unsubscribe',
    prepare: (world) => subscribe(world, 'a/b'),
    start: ({ client }) => client.unsubscribe('a/b'),
    ...request(/^unsubscribe a\/b #\d+$/),
  },
]

/** Says yes to everything, in the words of the version. */
function server(version: 4 | 5, sessionPresent: boolean): Answer {
  const answer = willing(sessionPresent)
  return (packet) =>
    packet.type === 'unsubscribe' && version === 4
      ? { type: 'unsuback', packetId: packet.packetId, reasonCodes: [] }
      : answer(packet)
}

/** The operation on a client whose first connection ends after so many bytes towards the server; the session is durable on both versions. */
async function started(
  operation: Operation,
  bytes: number | undefined,
  policy: 'queue' | 'reject',
  version: 4 | 5,
) {
  const offline = { qos0: policy, qos1: policy, qos2: policy }
  const session = { clientId: 'c', cleanStart: false, protocolVersion: version }
  const world: World = new World({ ...lasting, ...session, outbound: { offline } }, {}, 1, () => {
    const [near, far] = memoryPair({
      schedule: (callback, delay) => world.clock.setTimer(callback, delay),
      ...(bytes === undefined || world.peers.length > 0 ? {} : { forward: { drop: bytes } }),
    })
    world.peers.push(new ScriptedPeer(far, version, (packet) => world.answer?.(packet)))
    return near
  })
  await world.up(server(version, false))
  await operation.prepare?.(world)
  const from = world.peer.bytes.length
  const before = world.peer.received.length
  const ends: unknown[] = []
  operation.start(world).then(
    () => ends.push('fulfilled'),
    (error: unknown) => ends.push(error),
  )
  await world.settle()
  const [packet = []] = bytes === undefined ? frames(world.peer).slice(before) : []
  return { world, from, to: from + packet.length, ends }
}

const cases = operations.flatMap((operation) =>
  ([5, 4] as const).flatMap((version) =>
    (['queue', 'reject'] as const).flatMap((policy) =>
      (['kept', 'lost'] as const).map((session) => ({ ...operation, version, policy, session })),
    ),
  ),
)

describe('half written when the link drops', () => {
  it.each(cases)(
    '$name on version $version, offline "$policy", the session is $session',
    async ({ version, policy, session, ...operation }) => {
      const whole = await started(operation, undefined, policy, version)
      expect(whole.to - whole.from).toBeGreaterThan(6)
      whole.world.client.destroy()
      for (let at = whole.from + 1; at <= whole.to; at++) {
        const { world, ends } = await started(operation, at, policy, version)
        expect(world.peers[0]?.bytes, `byte ${at}`).toHaveLength(at)
        // Handed to the transport, QoS 0 has had its only chance.
        expect(ends, `byte ${at}`).toEqual(operation.name === 'QoS 0' ? ['fulfilled'] : [])
        const peer = await comeBack(world, server(version, session === 'kept'))
        await world.settle()
        // A request whose answer did not come goes behind an answered PINGREQ.
        const lines = carried(peer).filter((line) => line !== 'pingreq')
        expect(lines, `byte ${at}`).toEqual(
          operation[session].map((pattern) => expect.stringMatching(pattern)),
        )
        const isLost = session === 'lost' && operation.name === 'QoS 2'
        expect(ends, `byte ${at}`).toMatchObject([
          isLost ? { code: 'ERR_SESSION_LOST', outcome: 'unknown' } : 'fulfilled',
        ])
        await lose(world)
        expect(carried(await comeBack(world, server(version, true))), `byte ${at}: once`).toEqual(
          [],
        )
        world.client.destroy()
      }
    },
  )
})
