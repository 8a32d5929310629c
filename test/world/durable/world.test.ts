/**
 * The durable world as a whole: a process that dies at every moment of the scenarios, and random seeds.
 *
 * The long runs are child processes of the runner. A push has some hundred seeds and each fourth crash, others each time; with MQWIRE_LONG there are 5,000
 * seeds and every crash.
 */
import { describe, expect, test } from 'vitest'
import { runCommand } from '../command.js'
import { parsed, shown } from '../shrink.js'
import { generate } from './generate.js'
import { LowIdentifiers } from './low-identifiers.js'
import { scenarios } from './scenarios.js'

const long = process.env['MQWIRE_LONG'] !== undefined
const run = (...args: string[]) => runCommand('--durable', ...args)

describe('a device whose process dies and comes back', () => {
  test('at the moments of the scenarios: each step of the disk, each packet, each timer', { timeout: 1_200_000 }, async () => {
    const { code, text } = await run('--enumerate', '--every', long ? '1' : '4')
    const last = text.trim().split('\n').at(-1)
    expect(last, text).toMatch(/^world: \d{3,} schedules, 0 seeds, 0 findings, [\d.]+ s$/)
    if (long) expect(Number(last?.split(' ')[1])).toBeGreaterThan(2000)
    expect(code).toBe(0)
  })

  test('at random, with links that are cut, brokers that forget, and stores that fail', { timeout: 1_200_000 }, async () => {
    const seeds = long ? 5000 : 400
    const { code, text } = await run('--seeds', String(seeds))
    expect(text.trim().split('\n').at(-1), text).toMatch(new RegExp(`^world: ${seeds} schedules, ${seeds} seeds, 0 findings, [\\d.]+ s$`))
    expect(code).toBe(0)
  })
})

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
