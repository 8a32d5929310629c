/** Listeners in the manner of Node's EventEmitter: the same program with both. */
import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { Listeners } from '../../../src/compat/listeners.js'
import { Random } from '../../world/random.js'

interface Events {
  a: (...given: number[]) => void
  b: () => void
}

type Both = Listeners<Events>

/** Runs a program with each. */
function both(run: (emitter: Both) => unknown): void {
  const results = [
    new Listeners<Events>(() => undefined),
    new EventEmitter() as unknown as Both,
  ].map(run)
  expect(results[0]).toEqual(results[1])
}

it('are called in order, with everything given and with the emitter as this', () => {
  both((emitter) => {
    const calls: unknown[] = []
    emitter.on('a', function (this: unknown, ...given) {
      calls.push(['first', given, this === emitter])
    })
    emitter.prependListener('a', () => calls.push('before'))
    emitter.addListener('a', () => calls.push('last'))
    return [emitter.emit('a', 1, 2), emitter.emit('b'), calls]
  })
})

it('do the same in any order of calls, also of calls from inside, where one is added more than once', () => {
  for (let seed = 1; seed <= 100; seed++)
    both((emitter) => {
      const random = new Random(seed)
      const trace: unknown[] = []
      let left = 60
      const act = (): void => {
        if (left-- <= 0) return
        const event = random.pick(['a', 'b'] as const)
        const add = random.pick(['on', 'once', 'prependListener', 'prependOnceListener'] as const)
        const listener = random.pick(listeners) as () => void
        const action = random.below(10)
        if (action < 4) emitter[add](event, listener)
        else if (action < 6) emitter.off(event, listener)
        else trace.push(emitter.emit(event))
        trace.push(emitter.listenerCount(event), emitter.eventNames().sort())
      }
      // The last two act themselves.
      const listeners = [0, 1, 2, 3].map((index) => () => {
        trace.push(index)
        if (index > 1) act()
      })
      for (let step = 0; step < 30; step++) act()
      return trace
    })
})

it('are counted and listed', () => {
  both((emitter) => {
    const one = () => undefined
    emitter.on('a', one).on('a', one).once('b', one)
    const seen = [
      emitter.listenerCount('a'),
      emitter.listenerCount('a', one),
      emitter.listeners('a').length,
      emitter.listeners('b')[0] === one,
    ]
    const names = emitter.eventNames()
    emitter.removeAllListeners('a')
    const fewer = emitter.eventNames()
    emitter.removeAllListeners()
    return [
      seen,
      names,
      fewer,
      emitter.eventNames(),
      emitter.getMaxListeners(),
      emitter.setMaxListeners(3).getMaxListeners(),
    ]
  })
})

it('what one throws reaches who emits', () => {
  both((emitter) => {
    emitter.on('a', () => {
      throw new Error('mine')
    })
    try {
      return emitter.emit('a')
    } catch (error) {
      return (error as Error).message
    }
  })
})

it('what is no function is refused', () => {
  const emitter = new Listeners<Events>(() => undefined)
  expect(() => emitter.on('a', 'x' as never)).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_HANDLER' }),
  )
})

it('who gets one is told', () => {
  const added: string[] = []
  const emitter = new Listeners<Events>((event) => added.push(event))
  emitter.once('a', () => undefined).prependListener('b', () => undefined)
  expect(added).toEqual(['a', 'b'])
})
