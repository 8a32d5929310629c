/**
 * Operations and streams under the fault world: whatever is lost, and whenever, every call settles, and no answer is given twice.
 *
 * `MQWIRE_LONG=1` tries thirty times as many seeds.
 */
import { rmSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { quietly } from '../../corpus/run/quietly.js'
import { bundled, bundles } from './bundle.js'
import { plantedDefects } from './defects.js'
import { type Plan, planFrom, planOf, type Trouble } from './plan.js'
import { run } from './world.js'

const isLong = process.env['MQWIRE_LONG'] === '1'

afterAll(() => rmSync(bundles, { recursive: true, force: true }))

/** Steps that the usual asks take when nothing goes wrong. */
async function stepsOf(): Promise<number> {
  const { findings, steps } = await run(planOf(undefined, true))
  expect(findings).toEqual([])
  expect(steps).toBeGreaterThan(80)
  return steps
}

async function findingsOf(plans: Iterable<Plan>): Promise<string[]> {
  const all: string[] = []
  for (const plan of plans) all.push(...(await quietly(() => run(plan))).findings)
  return all
}

/** What may go wrong at each event. True: the streams must not fail. A stride of 2: at every other one, unless there is time. */
const anytime: readonly [name: string, trouble: (step: number) => Trouble, gentle: boolean, stride?: number][] = [
  ['the caller loses its connection', (step) => ({ step, what: 'cut', who: 'caller', down: 50 }), true],
  ['the server loses its connection', (step) => ({ step, what: 'cut', who: 'server', down: 50 }), true],
  ['the broker restarts with its sessions', (step) => ({ step, what: 'restart', keep: true }), true, 2],
  ['the broker restarts without its sessions', (step) => ({ step, what: 'restart', keep: false }), false],
  ['the server dies, and comes back', (step) => ({ step, what: 'kill', down: 20, next: 'same' }), false],
  ['the server dies', (step) => ({ step, what: 'kill', down: 0, next: 'none' }), false, 2],
  ['a second server answers', (step) => ({ step, what: 'twin' }), false, 2],
  ['the caller ends', (step) => ({ step, what: 'close' }), false, 2],
]

function* seeds(most: number): Iterable<Plan> {
  for (let seed = 1; seed <= most; seed++) yield planFrom(seed)
}

describe('every call settles, and no answer is given twice', () => {
  it.each(anytime)('%s, at each event', async (_name, trouble, gentle, stride = 1) => {
    const every = isLong ? 1 : stride
    const steps = Array.from({ length: Math.ceil((await stepsOf()) / every) }, (_, index) => index * every + 1)
    expect(await findingsOf(steps.map((step) => planOf(trouble(step), gentle)))).toEqual([])
  })

  const most = isLong ? 6000 : 200
  it(`${most} plans at random`, async () => {
    expect(await findingsOf(seeds(most))).toEqual([])
  }, 300_000)
})

describe('planted defects are found', () => {
  const first = { do: 'call', at: 0, length: 1, gap: 0, window: 1, timeout: 5000, qos: 1 } as const
  const slow = { do: 'stream', at: 50, length: 20, gap: 10, window: 8, timeout: 5000, qos: 1 } as const
  const lostServer = (step: number): Trouble => ({ step, what: 'cut', who: 'server', down: 50 })

  const lostSession: Trouble = { step: 20, what: 'cut', who: 'caller', down: 5000 }

  /** A session that is lost between two answers; a second server that is ahead of the first; troubles of every kind; what happens at random. */
  function* plans(): Iterable<Plan> {
    yield { ...planOf(lostSession, false), asks: [{ ...slow, gap: 1500, timeout: 20_000 }], expiry: 2 }
    for (let step = 20; step < 110; step += 5)
      yield { ...planOf(undefined, false), asks: [first, slow], troubles: [{ step: 1, what: 'twin' }, lostServer(step)] }
    for (let step = 5; step < 120; step += 7) for (const [, trouble, gentle] of anytime) yield planOf(trouble(step), gentle)
    yield* seeds(600)
  }

  it('none where there is none', async () => {
    const world = await bundled()
    for (const plan of [planOf(undefined, true), ...seeds(10)]) expect((await world.run(plan)).findings).toEqual([])
  })

  it.each(plantedDefects)('$name', async (defect) => {
    const world = await bundled(defect)
    for (const plan of plans()) if ((await quietly(() => world.run(plan))).findings.length > 0) return
    expect.fail('nobody noticed')
  })
})
