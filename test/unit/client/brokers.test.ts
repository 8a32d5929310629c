import { describe, expect, it } from 'vitest'
import { BrokerList } from '../../../src/client/dialling/brokers.js'
import { MqttError } from '../../../src/errors.js'

const no = (reasonCode: number): MqttError => new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode })

/** Whose turn it is over so many rotations. */
function turns(list: BrokerList<string>, count: number): string {
  return Array.from({ length: count }, () => {
    const { current } = list
    list.rotate()
    return current
  }).join('')
}

describe('rotation', () => {
  it('begins with the first, goes through in order, and begins again', () => {
    expect(turns(new BrokerList(['a', 'b', 'c']), 7)).toBe('abcabca')
  })

  it('of one endpoint: always that', () => {
    expect(turns(new BrokerList(['a']), 3)).toBe('aaa')
  })

  it('what worked sticks: nothing moves by itself', () => {
    const list = new BrokerList(['a', 'b'])
    list.rotate()
    list.worked()
    list.settled()
    expect(list.current).toBe('b')
  })
})

describe('refusals', () => {
  it('an endpoint that refused is passed over', () => {
    const list = new BrokerList(['a', 'b', 'c'])
    list.rotate()
    list.refuse(no(0x8a))
    list.rotate()
    expect(turns(list, 4)).toBe('caca')
    expect(list.refusals).toBeUndefined()
  })

  it('when all refused, every reason is there, in the order of the list', () => {
    const list = new BrokerList(['a', 'b'])
    list.rotate()
    list.refuse(no(0x85))
    list.rotate()
    list.refuse(no(0x8a))
    expect(list.refusals?.map(([host, error]) => [host, error.reasonCode])).toEqual([
      ['a', 0x8a],
      ['b', 0x85],
    ])
  })

  it('when all refused, rotating stays where it is', () => {
    const list = new BrokerList(['a', 'b'])
    list.refuse(no(0x8a))
    list.rotate()
    list.refuse(no(0x8a))
    list.rotate()
    expect(list.current).toBe('b')
  })

  it('a new list has refused nobody, and begins with its first', () => {
    const list = new BrokerList(['a', 'b'])
    list.rotate()
    list.refuse(no(0x8a))
    list.replace(['b', 'c'])
    expect(list.length).toBe(2)
    expect(turns(list, 3)).toBe('bcb')
  })
})

describe('references', () => {
  it('a detour is dialled until it fails; then the list goes on', () => {
    const list = new BrokerList(['a', 'b'])
    expect(list.follow('x', 'x:1')).toBe(true)
    expect(list.current).toBe('x')
    list.worked()
    expect(list.current).toBe('x')
    list.rotate()
    expect(['a', 'b']).toContain(list.current)
  })

  it('a detour that refuses does not count against the list', () => {
    const list = new BrokerList(['a'])
    list.follow('x', 'x:1')
    list.refuse(no(0x8a))
    expect(list.refusals).toBeUndefined()
    list.rotate()
    expect(list.current).toBe('a')
  })

  it('at most three hops', () => {
    const list = new BrokerList(['a'])
    expect(['x', 'y', 'z', 'w'].map((name) => list.follow(name, name))).toEqual([true, true, true, false])
    expect(list.current).toBe('z')
  })

  it('a chain that leads back is not followed', () => {
    const list = new BrokerList(['a'])
    expect(['x', 'y', 'x'].map((name) => list.follow(name, name))).toEqual([true, true, false])
  })

  it('hops count until a connection was stable, not until one came up', () => {
    const list = new BrokerList(['a'])
    for (const name of ['x', 'y', 'z']) {
      list.follow(name, name)
      list.worked()
    }
    expect(list.follow('w', 'w')).toBe(false)
    list.settled()
    expect(list.follow('w', 'w')).toBe(true)
  })

  it('a new list ends the detour and its chain', () => {
    const list = new BrokerList(['a'])
    for (const name of ['x', 'y', 'z']) list.follow(name, name)
    list.replace(['b'])
    expect(list.current).toBe('b')
    expect(list.follow('x', 'x')).toBe(true)
  })
})
