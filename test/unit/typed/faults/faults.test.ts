/**
 * Operations and streams under the fault world: whatever is lost, and whenever, every call settles, and no answer is given twice.
 *
 * `MQWIRE_LONG=1` tries thirty times as many seeds.
 */
import { describe, expect, it } from 'vitest'
import { quietly } from '../../../rules/corpus/run/quietly.js'
import { type Plan, planFrom, planOf, type Trouble } from './plan.js'
import { run } from './world.js'

const isLong = process.env['MQWIRE_LONG'] === '1'

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
const anytime: readonly [
  name: string,
  trouble: (step: number) => Trouble,
  gentle: boolean,
  stride?: number,
][] = [
  [
    'the caller loses its connection',
    (step) => ({ step, what: 'cut', who: 'caller', down: 50 }),
    true,
  ],
  [
    'the server loses its connection',
    (step) => ({ step, what: 'cut', who: 'server', down: 50 }),
    true,
  ],
  [
    'the broker restarts with its sessions',
    (step) => ({ step, what: 'restart', keep: true }),
    true,
    2,
  ],
  [
    'the broker restarts without its sessions',
    (step) => ({ step, what: 'restart', keep: false }),
    false,
  ],
  [
    'the server dies, and comes back',
    (step) => ({ step, what: 'kill', down: 20, next: 'same' }),
    false,
  ],
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
    const steps = Array.from(
      { length: Math.ceil((await stepsOf()) / every) },
      (_, index) => index * every + 1,
    )
    expect(await findingsOf(steps.map((step) => planOf(trouble(step), gentle)))).toEqual([])
  })

  const most = isLong ? 6000 : 200
  it(`${most} plans at random`, async () => {
    expect(await findingsOf(seeds(most))).toEqual([])
  }, 300_000)
})
