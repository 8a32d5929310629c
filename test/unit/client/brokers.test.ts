import { describe, expect, it } from 'vitest'
import { BrokerList } from '../../../src/client/dialling/brokers.js'
import { MqttError } from '../../../src/errors.js'

/** A list of endpoints, one letter each, over which so many steps went: `>` rotates, `!` refuses with 0x80 and the number of the step. */
function list(names: string, steps = ''): BrokerList<string> {
  const made = new BrokerList([...names])
  for (const [index, step] of [...steps].entries()) {
    if (step === '>') made.rotate()
    else made.refuse(new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode: 0x80 + index }))
  }
  return made
}

/** Whose turn it is over so many rotations. */
function turns(brokers: BrokerList<string>, count: number): string {
  return Array.from({ length: count }, () => {
    const { current } = brokers
    brokers.rotate()
    return current
  }).join('')
}

const follow = (brokers: BrokerList<string>, names: string): boolean[] =>
  [...names].map((name) => brokers.follow(name, name))

describe('rotation', () => {
  it('begins with the first, goes through in order, and begins again; of one endpoint it is always that', () => {
    expect([turns(list('abc'), 7), turns(list('a'), 3)]).toEqual(['abcabca', 'aaa'])
  })

  it('what worked sticks: nothing moves by itself', () => {
    const brokers = list('ab', '>')
    brokers.worked()
    brokers.settled()
    expect(brokers.current).toBe('b')
  })
})

describe('refusals', () => {
  it('an endpoint that refused is passed over', () => {
    const brokers = list('abc', '>!>')
    expect([turns(brokers, 4), brokers.refusals]).toEqual(['caca', undefined])
  })

  it('when all refused, every reason is there, in the order of the list, and rotating stays where it is', () => {
    const brokers = list('ab', '>!>!>')
    expect(brokers.refusals?.map(([host, error]) => [host, error.reasonCode])).toEqual([
      ['a', 0x83],
      ['b', 0x81],
    ])
    expect(list('ab', '!>!>').current).toBe('b')
  })

  it('a new list has refused nothing, and begins with its first', () => {
    const brokers = list('ab', '>!')
    brokers.replace(['b', 'c'])
    expect([brokers.length, turns(brokers, 3)]).toEqual([2, 'bcb'])
  })
})

describe('references', () => {
  it('a detour is dialled until it fails; then the list goes on', () => {
    const brokers = list('ab')
    expect([brokers.follow('x', 'x:1'), brokers.current]).toEqual([true, 'x'])
    brokers.worked()
    expect(brokers.current).toBe('x')
    brokers.rotate()
    expect(['a', 'b']).toContain(brokers.current)
  })

  it('a detour that refuses does not count against the list', () => {
    const brokers = list('a')
    brokers.follow('x', 'x:1')
    brokers.refuse(new MqttError('ERR_CONNECT_REFUSED', undefined, { reasonCode: 0x8a }))
    expect(brokers.refusals).toBeUndefined()
    brokers.rotate()
    expect(brokers.current).toBe('a')
  })

  it('at most three hops, and none that leads back', () => {
    const brokers = list('a')
    expect([follow(brokers, 'xyzw'), brokers.current]).toEqual([[true, true, true, false], 'z'])
    expect(follow(list('a'), 'xyx')).toEqual([true, true, false])
  })

  it('hops count until a connection was stable, not until one came up', () => {
    const brokers = list('a')
    for (const name of 'xyz') {
      brokers.follow(name, name)
      brokers.worked()
    }
    expect(follow(brokers, 'w')).toEqual([false])
    brokers.settled()
    expect(follow(brokers, 'w')).toEqual([true])
  })

  it('a new list ends the detour and its chain', () => {
    const brokers = list('a')
    follow(brokers, 'xyz')
    brokers.replace(['b'])
    expect([brokers.current, ...follow(brokers, 'x')]).toEqual(['b', true])
  })
})
