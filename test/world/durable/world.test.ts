/** The parts of the durable world. `../seeds.test.ts` plays it. */
import { describe, expect, test } from 'vitest'
import { parsed, shown } from '../shrink.js'
import { generate } from './generate.js'
import { LowIdentifiers } from './low-identifiers.js'
import { scenarios } from './scenarios.js'

describe('its schedules', () => {
  test('are the same for the same seed, and can be printed and run again', () => {
    expect(generate(4711)).toEqual(generate(4711))
    expect(generate(4711)).not.toEqual(generate(4712))
    expect(parsed(shown(generate(4711)))).toEqual(JSON.parse(JSON.stringify(generate(4711))))
  })

  test('have a name each, where they are fixed', () => {
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length)
  })
})

describe('a broker with low identifiers', () => {
  const publish = (packetId: number) =>
    ({ type: 'publish', topic: 't', payload: new Uint8Array(0), qos: 2, dup: false, retain: false, packetId, properties: {} }) as const
  const answer = (type: 'pubrec' | 'pubcomp', packetId: number) => ({ type, packetId, reasonCode: 0, properties: {} }) as const

  test('gives each message the lowest one that is free, and knows it again', () => {
    const identifiers = new LowIdentifiers()
    expect([7, 8].map((id) => identifiers.intercept('out', publish(id)))).toMatchObject([{ packetId: 1 }, { packetId: 2 }])
    expect(identifiers.intercept('in', answer('pubrec', 1))).toMatchObject({ packetId: 7 })
    expect(identifiers.intercept('in', answer('pubcomp', 1))).toMatchObject({ packetId: 7 })
    expect(identifiers.intercept('out', publish(9))).toMatchObject({ packetId: 1 })
    expect(identifiers.intercept('out', publish(8))).toMatchObject({ packetId: 2 })
    expect(identifiers.intercept('in', answer('pubcomp', 3))).toBeUndefined()
  })
})
