/** A publish that waits: how long it may do so is counted from the call. */
import { expect, it } from 'vitest'
import { silent } from '../../../src/common/abort.js'
import { Asked } from '../../../src/members/asked.js'
import type { Time } from '../../../src/members/member.js'

it('its wait ends as long after the call as its ttl says, whenever the wait begins', () => {
  let now = 1_000_000
  const delays: number[] = []
  const setTimer = (_: () => void, delay: number): (() => void) => {
    delays.push(delay)
    return () => undefined
  }
  const time = { now: () => now, setTimer } as unknown as Time
  const asked = new Asked(
    't',
    'x',
    { ttl: 100 },
    { time, refuse: (_, error) => silent(Promise.reject(error)) },
  )
  for (const later of [0, 30, 200]) {
    now = 1_000_000 + later
    asked.watch(() => undefined)()
  }
  expect(delays).toEqual([100, 70, 0])
})
