/** The simulator's templates, and devices that share connections: over its broker in memory, under virtual time. */
import { beforeAll, describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { requireDist } from '../fixture.js'
import { type Settings, simulator } from './simulator.js'

let modules: Awaited<ReturnType<typeof simulator>>
beforeAll(async () => {
  await requireDist()
  modules = await simulator()
})

/** A fleet that runs, with so many connections at most. */
async function started(settings: Partial<Settings>, mostLinks = Number.POSITIVE_INFINITY) {
  const clock = new VirtualClock()
  const broker = Object.assign(modules.memoryBroker({ clock }), { mostLinks })
  let clients = 0
  type Parts = ConstructorParameters<typeof BaseClient>
  const makeClient = (endpoint: Parts[1], options: Parts[2]): BaseClient => {
    clients += 1
    return new BaseClient(virtualPlatform(clock, clients), endpoint, options)
  }
  const fleet = new modules.Fleet({ makeClient, broker, clock, name: 'test', random: () => 0.25 })
  const starting = fleet.start({ rate: 2, ramp: 1000, ...settings })
  await clock.advance(3000)
  await starting
  return { clock, broker, fleet, faults: new modules.Faults(fleet) }
}

type World = Awaited<ReturnType<typeof started>>

async function stopped({ clock, fleet, broker }: World): Promise<void> {
  const stopping = fleet.stop()
  await clock.advance(15_000)
  await stopping
  expect([fleet.state, broker.links.size, broker.violations]).toEqual(['stopped', 0, 0])
  broker.close()
  expect(clock.pending).toBe(0)
}

describe('templates', () => {
  const known = { device: 7, n: 3, qos: 1, at: 0, date: 0, random: () => 0.5, prefix: 'simulator/x' }

  it('are filled in, and leave the braces of JSON alone', () => {
    const fill = (text: string): string => modules.compile(text)(known)
    expect(fill('{ "a": {device}, "b": [{n}, {random}], "c": {} }')).toBe('{ "a": 7, "b": [3, 0.5000], "c": {} }')
    expect(fill('{prefix}/{device}/{qos}')).toBe('simulator/x/7/1')
    expect(fill('{time} {ms} {value}')).toBe('1970-01-01T00:00:00.000Z 0 20')
    expect(fill('{A} {1} {device')).toBe('{A} {1} {device')
    expect(JSON.parse(fill('{ "device": {device}, "n": {n}, "celsius": {value}, "humidity": {random} }'))).toMatchObject({ device: 7, n: 3 })
  })

  it('say what is wrong with them', () => {
    expect(modules.problemOf('{device} {nobody}')).toBe('There is no placeholder {nobody}.')
    expect(modules.problemOf('{constructor}')).toBe('There is no placeholder {constructor}.')
    expect(modules.problemOf('x'.repeat(20_000))).toContain('16,384')
    expect(modules.problemOf('{"a":{random}}')).toBeUndefined()
    for (const topic of ['', 'a/+', '#', 'a\0', '$SYS/x', 'a/{b}']) expect(modules.topicProblemOf(topic), topic).toBeTypeOf('string')
    expect(modules.topicProblemOf('plant/{device}')).toBeUndefined()
  })

  it('give the filter on which everything comes', () => {
    expect(modules.filterOf('{prefix}/{device}/{qos}', 'simulator/x')).toBe('simulator/x/+/+')
    expect(modules.filterOf('plant/dev-{device}/{n}-{random}/state', 'simulator/x')).toBe('plant/+/+/state')
  })

  it.each([0, 1, 2] as const)('of topic and payload are published at QoS %s, and every message is told apart by its mark', async (qos) => {
    const made = await started({ devices: 5, qos, payload: 'template', topic: 'plant/{device}/reading', template: 'no number here' })
    await made.clock.advance(5000)
    const { sent, arrived } = made.fleet.figures()
    expect(sent).toBeGreaterThan(40)
    expect(arrived).toBeGreaterThan(sent - 10)
    made.faults.begin('cutAll')
    await made.clock.advance(8000)
    made.fleet.set({ payload: 'json' })
    await made.clock.advance(3000)
    await stopped(made)
    const figures = made.fleet.figures()
    expect(figures).toMatchObject({ lost: 0, twice: 0, open: 0 })
    if (qos > 0) expect(figures.arrived).toBe(figures.sent)
  })
})

describe('devices that share connections', () => {
  it('have so many and no more, break and come back together, and lose nothing', async () => {
    const made = await started({ devices: 20, qos: 2 }, 7)
    const { clock, fleet, broker, faults } = made
    expect(fleet.figures()).toMatchObject({ devices: 20, connected: 20 })
    // The consumer has one.
    expect(broker.links.size).toBe(8)
    expect(fleet.devices.map(({ sharing }) => sharing)).toEqual([2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2])
    broker.links.cut((owner) => owner === fleet.devices[3]?.clientId)
    await clock.advance(100)
    expect(fleet.devices.flatMap(({ state }, index) => (state === 'connected' ? [] : [index]))).toEqual([3, 10, 17])
    await clock.advance(8000)
    for (const fault of ['cutAll', 'forget', 'takeOver', 'silence', 'acknowledgements', 'restart']) {
      faults.begin(fault)
      await clock.advance(15_000)
      expect(fleet.figures(), fault).toMatchObject({ devices: 20, connected: 20, lost: 0, twice: 0 })
    }
    await stopped(made)
    expect(fleet.figures()).toMatchObject({ lost: 0, twice: 0, open: 0, awaited: 0 })
    expect(fleet.devices.map(({ state }) => state)).toEqual(Array(20).fill('closed'))
  })

  it('stop one by one, and the last takes the connection along', async () => {
    const made = await started({ devices: 3, qos: 1 }, 1)
    const { clock, fleet, broker } = made
    const [first, second, third] = fleet.devices
    if (first === undefined || second === undefined || third === undefined) throw new Error('no devices')
    fleet.halt(second)
    await clock.advance(1000)
    expect([first.state, second.state, third.state, broker.links.size]).toEqual(['connected', 'closed', 'connected', 2])
    fleet.halt(first)
    fleet.halt(third)
    await clock.advance(6000)
    expect([first.state, third.state, broker.links.size]).toEqual(['closed', 'closed', 1])
    for (const device of [first, second, third]) fleet.resume(device)
    await clock.advance(2000)
    expect(fleet.figures()).toMatchObject({ connected: 3 })
    expect(broker.links.size).toBe(2)
    fleet.set({ devices: 1 })
    await clock.advance(7000)
    expect(fleet.figures()).toMatchObject({ devices: 1, connected: 1 })
    await stopped(made)
    expect(fleet.figures()).toMatchObject({ lost: 0, open: 0 })
  })
})
