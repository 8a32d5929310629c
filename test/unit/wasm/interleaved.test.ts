/**
 * Any bytes, delivered in any way, give the same frames, fields and errors through both scanners. Several connections of one thread share the window, the table and the numbers of topics: each tells the same as alone, whatever the others do
 * between any two of its frames.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { WasmFrames, type Worth } from '../../../src/wasm/frames.js'
import { always, differs, instantiate, sizeLimit, tellFramer } from './scanner.js'
import { type Delivery, type Story, type Telling, tellStepwise } from './story.js'
import { type Stream, streams } from './streams.js'

const seconds = Number(process.env['MQWIRE_FUZZ_SECONDS'] ?? 8)

/** One connection on its way, with the number of deliveries that have begun. */
interface Connection {
  readonly telling: Telling
  readonly deliveries: readonly Delivery[]
  begun: number
  state: 'begins' | 'reads' | 'keeps' | 'ends' | 'is over'
  story: Story
}

/** A read into the window is whole before the next begins: nobody is in the midst of a walk then. */
function mayStep(connection: Connection, all: readonly Connection[]): boolean {
  if (connection.state === 'is over') return false
  if (connection.state !== 'begins' || connection.deliveries[connection.begun]?.inPlace !== true)
    return true
  return all.every(({ state }) => state !== 'reads')
}

function step(connection: Connection): void {
  const { done, value } = connection.telling.next()
  if (done === true) {
    connection.state = 'is over'
    connection.story = value
  } else {
    if (connection.state === 'begins') connection.begun += 1
    connection.state = value
  }
}

/** Runs them in an order drawn from `turns`, and gives their stories. */
function interleave(
  memory: ReturnType<typeof instantiate>,
  given: readonly Stream[],
  turns: readonly number[],
  worth: Worth | undefined,
): Story[] {
  const all = given.map(({ setting, deliveries }): Connection => {
    const telling = tellStepwise(
      new WasmFrames(memory, { ...setting, sizeLimit }, worth),
      deliveries,
      memory.window,
    )
    // Up to where the first delivery begins.
    const { done } = telling.next()
    return { telling, deliveries, begun: 0, state: done === true ? 'is over' : 'begins', story: [] }
  })
  for (let turn = 0; ; turn++) {
    const able = all.filter((connection) => mayStep(connection, all))
    if (able.length === 0) break
    step(able[(turns[turn % turns.length] as number) % able.length] as Connection)
  }
  expect(all.every(({ state }) => state === 'is over')).toBe(true)
  return all.map(({ story }) => story)
}

it('connections that share a scanner: tell what each tells alone', { timeout: 60_000 }, () => {
  const memory = instantiate()
  let count = 0
  const several = fc.array(streams, { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(
      several,
      fc.array(fc.nat(11), { minLength: 1, maxLength: 20 }),
      fc.constantFrom(always, undefined),
      (given, turns, worth) => {
        count += 1
        interleave(memory, given, turns, worth).forEach((story, index) => {
          const { setting, deliveries } = given[index] as Stream
          expect(differs(tellFramer(setting, deliveries), story)).toBeUndefined()
        })
        expect([memory.owner === undefined, memory.broken]).toEqual([true, false])
      },
    ),
    {
      numRuns: 1_000_000,
      interruptAfterTimeLimit: (seconds * 1000) / 2,
      markInterruptAsFailure: false,
    },
  )
  expect(count, 'inputs').toBeGreaterThan(30)
})
