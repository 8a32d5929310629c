/** Listeners in the manner of Node's EventEmitter: the same program with both. */
import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Listeners } from '../../../src/compat/listeners.js'

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

describe('listeners', () => {
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

  it('once is once, in front too', () => {
    both((emitter) => {
      const calls: unknown[] = []
      emitter.once('a', (n) => calls.push(['once', n]))
      emitter.prependOnceListener('a', (n) => calls.push(['front', n]))
      emitter.on('a', (n) => calls.push(['on', n]))
      emitter.emit('a', 1)
      emitter.emit('a', 2)
      return calls
    })
  })

  it('one that was added twice is removed once; a once-listener is removed by its function', () => {
    both((emitter) => {
      const calls: number[] = []
      const listener = (n: number) => calls.push(n)
      emitter
        .on('a', listener)
        .on('a', listener)
        .once('b', listener as never)
      emitter.off('a', listener)
      emitter.removeListener('b', listener as never)
      emitter.off('a', () => undefined)
      emitter.emit('a', 1)
      emitter.emit('b')
      return [calls, emitter.listenerCount('a'), emitter.listenerCount('b')]
    })
  })

  it('those who are added or removed meanwhile are not called, or are', () => {
    both((emitter) => {
      const calls: string[] = []
      const second = () => calls.push('second')
      emitter.on('a', () => {
        emitter.off('a', second)
        emitter.on('a', () => calls.push('late'))
      })
      emitter.on('a', second)
      emitter.emit('a')
      emitter.emit('a')
      return calls
    })
  })

  it('one that was added by once and by on is called by each, in any order', () => {
    for (const order of [
      ['once', 'on'],
      ['on', 'once'],
      ['once', 'once'],
    ] as const)
      both((emitter) => {
        let calls = 0
        const listener = () => {
          calls += 1
        }
        for (const add of order) emitter[add]('b', listener)
        const counts = [1, 2, 3].map(() => [emitter.emit('b'), calls, emitter.listenerCount('b')])
        return [counts, emitter.eventNames()]
      })
  })

  it('once is once where one that is called emits again, and where it is removed meanwhile', () => {
    both((emitter) => {
      const calls: string[] = []
      const last = () => calls.push('last')
      emitter.once('b', () => {
        calls.push('outer')
        emitter.emit('b')
        emitter.off('b', last)
      })
      emitter.once('b', () => calls.push('inner'))
      emitter.once('b', last)
      emitter.once('a', () => emitter.off('a', last))
      emitter.once('a', last)
      return [emitter.emit('b'), emitter.emit('b'), emitter.emit('a'), emitter.emit('a'), calls]
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
})
