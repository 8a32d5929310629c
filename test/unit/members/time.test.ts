/** Whose time a member has. */
import { expect, it } from 'vitest'
import { timeOf } from '../../../src/members/member.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'

it('is that of its client, or of the clients of its pool; else that of the runtime', async () => {
  const world = new VirtualWorld()
  await world.pass(12_345)
  const client = new world.Client('mqtt://b')
  const pool = poolOf((at, given) => new world.Client(at, given), 'mqtt://b', { size: 2 })
  expect([client, pool].map((member) => timeOf(member).now())).toEqual([12_345, 12_345])
  for (const other of [undefined, {}])
    expect(Math.abs(timeOf(other).now() - performance.now())).toBeLessThan(1000)
  await world.close()
})
