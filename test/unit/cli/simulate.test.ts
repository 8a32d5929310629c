/** The devices of `mqwire simulate` under virtual time: values, commands, faults, and the errors of wrong descriptions. */
import { describe, expect, it } from 'vitest'
import { type Description, parseDescription } from '../../../src/cli/simulate/description.js'
import {
  type DeviceMessage,
  devicesOf,
  type SimulatedDevice,
} from '../../../src/cli/simulate/device.js'
import { rowsOfCsv } from '../../../src/cli/simulate/generators.js'
import factory from '../../../src/cli/simulate/scenarios/factory.json' with { type: 'json' }
import home from '../../../src/cli/simulate/scenarios/home.json' with { type: 'json' }
import trucks from '../../../src/cli/simulate/scenarios/trucks.json' with { type: 'json' }

const setting = { seed: 1, began: 1_700_000_000_000, prefix: '' }

/** A description of one kind of device. */
const one = (more: object): Description =>
  parseDescription({ name: 'test', devices: [{ name: 'd', ...more }] })

const first = (more: object, seed = 1): SimulatedDevice =>
  devicesOf(one(more), { ...setting, seed })[0] as SimulatedDevice

/** All messages until then, which are asked for so often. */
function until(device: SimulatedDevice, end: number, step = end): DeviceMessage[] {
  const found: DeviceMessage[] = []
  for (let now = step; now <= end; now += step)
    for (let next = device.poll(now); next !== undefined; next = device.poll(now)) found.push(next)
  return found
}

/** The values of a generator that is asked once a second. */
function values(generator: object, seconds: number, faults: object[] = [], seed = 1): unknown[] {
  const topics = [{ topic: 't', every: '1s', payload: { v: generator } }]
  return until(first({ topics, faults }, seed), seconds * 1000).map(
    ({ payload }) => JSON.parse(String(payload)).v,
  )
}

describe('generators', () => {
  it.each([
    { $: 'walk', min: 10, max: 11, step: 5, digits: 3 },
    { $: 'sine', min: 10, max: 11, period: '7s', noise: 1 },
  ])('$$ stays in its range, and uses it', (generator) => {
    const found = values(generator, 1000) as number[]
    expect(found).toHaveLength(1000)
    expect(Math.min(...found)).toBeGreaterThanOrEqual(10)
    expect(Math.max(...found)).toBeLessThanOrEqual(11)
    expect(Math.max(...found) - Math.min(...found)).toBeGreaterThan(0.8)
  })

  it('an enum draws by its weights, and holds a value', () => {
    const found = values({ $: 'enum', values: ['a', 'b', 'c'], weights: [3, 1, 0] }, 2000)
    expect(new Set(found)).toEqual(new Set(['a', 'b']))
    expect(found.filter((each) => each === 'a').length / 2000).toBeCloseTo(0.75, 1)
    const held = values({ $: 'enum', values: [1, 2, 3, 4, 5, 6, 7, 8], hold: '10s' }, 30)
    expect(held.slice(0, 10)).toEqual(Array(10).fill(held[0]))
    expect(new Set(held).size).toBe(3)
  })

  it('a counter counts, the time is that of the message, rows come in turn', () => {
    expect(values({ $: 'counter', start: 1, step: 0.1 }, 4)).toEqual([1, 1.1, 1.2, 1.3])
    const device = first({
      topics: [{ topic: 't', every: '1s', payload: { v: { $: 'time' } } }],
    })
    const [message] = until(device, 1000)
    const { v } = JSON.parse(String(message?.payload))
    expect(Date.parse(v)).toBe(setting.began + Math.floor(message?.at as number))
    const rows = rowsOfCsv('\uFEFFa,b\r\n1,"x, ""y"""\n2.5,\n')
    expect(rows).toEqual([
      { a: 1, b: 'x, "y"' },
      { a: 2.5, b: '' },
    ])
    expect(values({ $: 'csv', rows, column: 'a' }, 3)).toEqual([1, 2.5, 1])
  })

  it('a track goes along its points at its speed, turns round, or ends', () => {
    // One minute of latitude is a nautical mile.
    const points = [
      [50, 8],
      [50 + 1 / 60, 8],
    ]
    type Fix = { lat: number; lon: number; speed: number; heading: number }
    const loop = values({ $: 'track', points, speed: 100 }, 60) as Fix[]
    expect(new Set(loop.map(({ heading }) => heading))).toEqual(new Set([0, 180]))
    for (const { lat, lon } of loop) {
      expect(lat).toBeGreaterThanOrEqual(50)
      expect(lat).toBeLessThanOrEqual(50.016667)
      expect(lon).toBe(8)
    }
    const [from, to] = values({ $: 'track', points, speed: 100, loop: false }, 2) as [Fix, Fix]
    expect((to.lat - from.lat) * 60 * 1852).toBeCloseTo(100, -1)
    const end = values({ $: 'track', points, speed: 1000, loop: false }, 9).at(-1)
    expect(end).toEqual({ lat: 50.016667, lon: 8, speed: 0, heading: 0 })
  })
})

describe('a simulation', () => {
  it.each([trucks, factory, home])('of $name: same seed, same messages', (scenario) => {
    const run = (seed: number, step?: number): DeviceMessage[][] =>
      devicesOf(parseDescription(scenario), { ...setting, seed }, 30).map((device) =>
        until(device, 120_000, step),
      )
    const messages = run(1)
    expect(messages).toHaveLength(30)
    expect(messages.flat().length).toBeGreaterThan(200)
    expect(run(1, 10)).toEqual(messages)
    expect(run(2)).not.toEqual(messages)
  })

  it('has a rate for each topic, names in templates, and values that its topics share', () => {
    const device = first({
      id: '{name}-{index}',
      values: { t: { $: 'walk', min: 0, max: 1, step: 1, digits: 6 } },
      state: { site: 'a/b' },
      topics: [
        { topic: '{site}/{id}/text', rate: 4, payload: '{"of":"{id}","t":{t}}' },
        { topic: '{id}/high', rate: 4, payload: ['{t}'], when: { value: 't', above: 0.5 } },
      ],
    })
    const messages = until(device, 10_000)
    const texts = messages.filter(({ topic }) => topic === 'a_b/d-1/text')
    expect(texts).toHaveLength(40)
    expect(JSON.parse(String(texts[0]?.payload))).toEqual({ of: 'd-1', t: expect.any(Number) })
    const high = messages.filter(({ topic }) => topic === 'd-1/high')
    expect(high.length).toBeGreaterThan(5)
    expect(high.length).toBeLessThan(35)
    for (const { payload } of high) expect(JSON.parse(String(payload))[0]).toBeGreaterThan(0.5)
  })

  it('scales its counts, with the prefix before topics and identifiers', () => {
    const devices = devicesOf(parseDescription(home), { ...setting, prefix: 'x-' }, 100)
    expect(devices).toHaveLength(100)
    expect(devices.filter(({ id }) => id === 'x-meter')).toHaveLength(1)
    expect(devices[0]?.will?.topic).toBe('x-home/lamp-1/available')
    expect([...(devices[0]?.commands.keys() ?? [])]).toContain('x-home/lamp-1/set')
  })
})

describe('commands', () => {
  const lamp = (): SimulatedDevice =>
    first({
      state: { on: false, level: 1, mode: 'warm' },
      topics: [{ topic: '{id}/state', on: 'change', retain: true, payload: { on: '{on}' } }],
      commands: [
        { topic: '{id}/on', set: 'on' },
        { topic: '{id}/mode', set: 'mode', values: ['warm', 'cold'] },
        { topic: '{id}/set', set: { on: { $: 'payload' }, level: { $: 'payload', field: 'l' } } },
        { topic: '{id}/off', set: { on: false }, reply: 'off {id}' },
      ],
    })

  it('change the state, publish it, and are answered', () => {
    const device = lamp()
    expect(device.handle('other', 'true', 0)).toBeUndefined()
    const turned = device.handle('d-1/on', 'true', 5)
    expect(turned?.messages).toMatchObject([
      { at: 5, topic: 'd-1/state', payload: '{"on":true}', retain: true },
    ])
    expect(JSON.parse(turned?.reply ?? '')).toEqual({ on: true, level: 1, mode: 'warm' })
    expect(device.handle('d-1/on', '{"on":true}', 6)?.messages).toEqual([])
    expect(device.handle('d-1/off', 'whatever', 7)).toMatchObject({ reply: 'off d-1' })
    expect(JSON.parse(device.handle('d-1/set', '{"on":true,"l":9}', 8)?.reply ?? '')).toMatchObject(
      { on: true, level: 9 },
    )
    expect(JSON.parse(device.handle('d-1/mode', 'cold', 8)?.reply ?? '').mode).toBe('cold')
  })

  it.each([
    ['d-1/on', 'yes', 'on must be a boolean'],
    ['d-1/on', '{"on":[1]}', 'on must not be an object'],
    ['d-1/mode', 'blue', 'mode must be one of "warm", "cold"'],
    ['d-1/set', '{"on":true,"l":"x"}', 'level must be a number'],
    ['d-1/set', 'true', 'nothing to set; write JSON with on, level'],
  ])('%s with %s is refused', (topic, payload, problem) => {
    const device = lamp()
    expect(device.handle(topic, payload, 0)).toEqual({
      reply: JSON.stringify({ error: problem }),
      problem,
      messages: [],
    })
    expect(device.connected(0)[0]?.payload).toBe('{"on":false}')
  })
})

describe('faults', () => {
  const walk = { $: 'walk', min: 0, max: 1, step: 0.2, digits: 6 }
  const fault = (kind: string): object[] => [{ kind, every: '60s', for: '20s' }]

  it('silence leaves out messages, at times of the seed', () => {
    const silent = values(walk, 800, fault('silent')).length
    // A quarter of the time.
    expect(silent).toBeGreaterThan(550)
    expect(silent).toBeLessThan(650)
  })

  it('a device that is offline says so, and publishes nothing', () => {
    const topics = [{ topic: 't', every: '1s', payload: 'x' }]
    const device = first({ topics, faults: fault('offline') })
    let offline = 0
    for (let now = 1000; now <= 800_000; now += 1000) {
      const messages = until(device, now).length
      if (!device.isOffline(now)) continue
      offline += 1
      expect(device.connected(now)).toEqual([])
      // One may lie before the fault began.
      expect(messages).toBeLessThanOrEqual(1)
    }
    expect(offline).toBeGreaterThan(150)
    expect(offline).toBeLessThan(250)
  })

  it('stuck sensors repeat, spikes leave the range, garbage is no JSON', () => {
    const stuck = values(walk, 800, fault('stuck')) as number[]
    const repeats = stuck.filter((value, index) => value === stuck[index - 1]).length
    expect(repeats).toBeGreaterThan(150)
    const spikes = (values(walk, 800, fault('spike')) as number[]).filter((value) => value > 1)
    expect(new Set(spikes)).toEqual(new Set([2]))
    expect(spikes.length).toBeGreaterThan(150)
    const topics = [{ topic: 't', every: '1s', payload: { v: 1 } }]
    const all = until(first({ topics, faults: fault('garbage') }), 800_000)
    const garbage = all.filter(({ payload }) => typeof payload !== 'string')
    expect([all.length, garbage.length > 150 && garbage.length < 250]).toEqual([800, true])
  })
})

describe('a wrong description', () => {
  const topic = { topic: 't', every: '1s', payload: 'x' }
  const walk = { $: 'walk', min: 0, max: 1, step: 1 }
  it.each([
    [{ name: 'x', devices: 3 }, 'devices: must be a list of 1 to 100; it is 3'],
    [{ devices: [{ name: 'd' }] }, 'name: must be a text of 1 to 1000 characters; it is missing'],
    [[], 'the description: must be an object; it is []'],
    [{ name: 'x', devices: [{ name: 'a b' }] }, /^devices\[0\]\.name: must be a name: /],
  ])('as a whole: %j', (value, message) => {
    expect(() => parseDescription(value)).toThrow(message)
  })

  it.each([
    [{ colour: 1 }, /^devices\[0\]\.colour: unknown; allowed: name, count, id, state, /],
    [{ count: 100_001 }, 'devices[0].count: must be a whole number from 1 to 100000; it is 100001'],
    [{ count: 2, id: 'x' }, 'devices[0].id: must have {index}, because count is above 1'],
    [{ state: { id: 1 } }, /^devices\[0\]\.state\.id: the name has another meaning already/],
    [
      { topics: [topic, { ...topic, rate: 2 }] },
      'devices[0].topics[1].rate: excludes "every"; remove one of them',
    ],
    [
      { topics: [{ ...topic, every: '1 s' }] },
      'devices[0].topics[0].every: must be a time such as "500ms", "10s", "2m" or "1h", at most "24d"; it is "1 s"',
    ],
    [{ topics: [{ ...topic, qos: 3 }] }, 'devices[0].topics[0].qos: must be 0, 1 or 2; it is 3'],
    [
      { topics: [{ ...topic, topic: 'a/#' }] },
      'devices[0].topics[0].topic: the topic must not hold a wildcard',
    ],
    [
      { topics: [{ ...topic, payload: { a: 'x{speed}' } }] },
      'devices[0].topics[0].payload.a: no name {speed} in "x{speed}"; allowed: id, index, name',
    ],
    [
      { topics: [{ ...topic, payload: [{ $: 'wlak' }] }] },
      'devices[0].topics[0].payload[0].$: no generator "wlak"; allowed: walk, sine, enum, counter, track, csv, time, state',
    ],
    [
      { topics: [{ ...topic, payload: { ...walk, max: 0 } }] },
      'devices[0].topics[0].payload.max: must be above min, which is 0',
    ],
    [
      { topics: [{ ...topic, payload: { ...walk, stop: 0 } }] },
      'devices[0].topics[0].payload.stop: unknown; allowed: $, min, max, digits, step',
    ],
    [
      { topics: [{ ...topic, payload: { $: 'csv', rows: [{ a: 1 }], column: 'b' } }] },
      'devices[0].topics[0].payload.column: no "b"; the columns are "a"',
    ],
    [
      { topics: [{ ...topic, payload: { $: 'csv', file: 'f', column: 'b' } }] },
      'devices[0].topics[0].payload.file: files cannot be read here; use "rows"',
    ],
    [
      { commands: [{ topic: 't', set: 'on' }] },
      'devices[0].commands[0].set: the device has no state; add "state"',
    ],
    [
      { state: { on: true }, commands: [{ topic: 't', set: 'on', values: ['x'] }] },
      'devices[0].commands[0].values[0]: must be a boolean, as on is in the state',
    ],
    [
      { state: { on: true }, commands: Array(2).fill({ topic: 't', set: 'on' }) },
      'devices[0].commands[1].topic: another command has it; give each command its own',
    ],
    [
      { faults: [{ kind: 'slow', every: '1m', for: '1s' }] },
      'devices[0].faults[0].kind: must be "offline", "silent", "stuck", "spike" or "garbage"; it is "slow"',
    ],
  ])('of a device: %j', (more, message) => {
    expect(() => one(more)).toThrow(message)
  })

  it('names two devices with one identifier', () => {
    const devices = [
      { name: 'a', id: 'x' },
      { name: 'b', id: 'x' },
    ]
    expect(() => devicesOf(parseDescription({ name: 'x', devices }), setting)).toThrow(
      'devices[1].id: devices[0] has "x" as well; give each device its own',
    )
  })
})
