/** The clock of a virtual world: what is due runs by itself, time passes when it is told to, and never goes back. */
import { expect, it, vi } from 'vitest'
import { LiveClock } from '../../../src/testing/live-clock.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'

const at = (clock: LiveClock, delay: number): Promise<number> =>
  new Promise((resolve) => void clock.setTimer(() => resolve(clock.now()), delay))

it('runs what is due now without being told, and what that makes due, in order', async () => {
  const clock = new LiveClock()
  const seen: number[] = []
  clock.setTimer(() => {
    seen.push(1)
    clock.setTimer(() => seen.push(3), 0)
  }, 0)
  clock.setTimer(() => seen.push(2), 0)
  expect(seen).toEqual([])
  await at(clock, 0)
  await at(clock, 0)
  expect(seen).toEqual([1, 2, 3])
  expect(clock.pending).toBe(0)
})

it('runs what was set while the last of what is due settles', async () => {
  const clock = new LiveClock()
  for (let hops = 0; hops < 12; hops++) {
    await at(clock, 0)
    for (let hop = 0; hop < hops; hop++) await undefined
    expect(await at(clock, 0)).toBe(0)
  }
})

it('lets promises settle between two timers', async () => {
  const clock = new LiveClock()
  const seen: string[] = []
  clock.setTimer(async () => {
    for (let hop = 0; hop < 20; hop++) await undefined
    seen.push('first')
  }, 5)
  clock.setTimer(() => seen.push('second'), 5)
  await clock.advance(5)
  expect(seen).toEqual(['first', 'second'])
})

it('puts calls that overlap one behind the other, so that time never goes back', async () => {
  const clock = new LiveClock()
  const times: number[] = []
  for (const delay of [0, 10, 20, 40]) clock.setTimer(() => times.push(clock.now()), delay)
  const passing = [clock.advance(30), clock.advance(10), clock.settle()]
  await passing[0]
  expect(clock.now()).toBe(30)
  await Promise.all(passing)
  expect(times).toEqual([0, 10, 20, 40])
  expect(clock.now()).toBe(40)
})

it('runs what is late after a jump', async () => {
  const clock = new LiveClock()
  const late = at(clock, 100)
  clock.jump(500)
  expect(await late).toBe(500)
})

it('goes on after a timer that throws, runs what else is due, and says so to the caller that let the time pass', async () => {
  const clock = new LiveClock()
  clock.setTimer(() => {
    throw new Error('broken')
  }, 10)
  const [other, later] = [at(clock, 10), at(clock, 20)]
  await expect(clock.advance(15)).rejects.toThrow('broken')
  expect(await other).toBe(10)
  await clock.advance(10)
  expect(await later).toBe(20)
})

it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5'])(
  'refuses %s milliseconds',
  async (duration) => {
    for (const clock of [new LiveClock(), new VirtualClock()]) {
      await expect(clock.advance(duration as number)).rejects.toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'duration',
      })
      expect(() => clock.jump(duration as number)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'duration' }),
      )
      expect(clock.now()).toBe(0)
    }
  },
)

it.each([LiveClock, VirtualClock])(
  '%o does not go back after a jump while time passes',
  async (Clock) => {
    const clock = new Clock()
    clock.setTimer(() => clock.jump(1000), 10)
    await clock.advance(100)
    expect(clock.now()).toBe(1010)
  },
)

it('needs no channels: not every test environment has them', async () => {
  vi.stubGlobal('MessageChannel', undefined)
  try {
    const clock = new LiveClock()
    expect(await at(clock, 0)).toBe(0)
    const later = at(clock, 10)
    await clock.advance(10)
    expect(await later).toBe(10)
  } finally {
    vi.unstubAllGlobals()
  }
})
