/** The simulator's fleet over its broker in memory, under virtual time: every fault is survived, and the counters tell loss and repetition from what is allowed. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { requireDist } from '../fixture.js'
import { exampleModule, Program } from './program.js'
import type { Settings } from './simulator.js'

await requireDist()
const files = ['fleet', 'faults', 'brokers', 'journal', 'ledger', 'template']
const loaded = await Promise.all(files.map((name) => exampleModule(`simulator/${name}.js`)))
const modules = Object.assign({}, ...loaded)

/** A fleet that has not started, with so many connections at most. */
function world(mostLinks = Number.POSITIVE_INFINITY) {
  const clock = new VirtualClock()
  const broker = Object.assign(modules.memoryBroker({ clock }), { mostLinks })
  let clients = 0
  type Parts = ConstructorParameters<typeof BaseClient>
  const makeClient = (endpoint: Parts[1], options: Parts[2]): BaseClient =>
    new BaseClient(virtualPlatform(clock, ++clients), endpoint, options)
  const { random } = virtualPlatform(clock, 7)
  const fleet = new modules.Fleet({ makeClient, broker, clock, name: 'test', random })
  return { clock, broker, fleet, faults: new modules.Faults(fleet) }
}

type World = ReturnType<typeof world>

async function started(settings: Partial<Settings>, line = 'direct', mostLinks?: number) {
  const made = world(mostLinks)
  made.broker.setLine(line)
  const starting = made.fleet.start({ rate: 2, ramp: 1000, ...settings })
  await made.clock.advance(2000)
  await starting
  return made
}

async function stopped({ clock, fleet, broker }: World): Promise<void> {
  const stopping = fleet.stop()
  await clock.advance(15_000)
  await stopping
  expect([fleet.state, broker.links.size, broker.violations]).toEqual(['stopped', 0, 0])
  broker.close()
  expect(clock.pending).toBe(0)
}

/** A property of each device. */
const each = ({ fleet }: World, name: string): unknown[] =>
  Array.from(fleet.devices, (device) => (device as Record<string, unknown>)[name])
const texts = ({ fleet }: World): string[] =>
  Array.from(fleet.journal.entries, (entry) => (entry as { text: string }).text)

describe('the fleet', () => {
  it('ramps up, publishes at its rate, follows its settings, and stops with everything settled and no timer left', async () => {
    const made = world()
    const { clock, fleet } = made
    const starting = fleet.start({ devices: 20, rate: 1, qos: 1, ramp: 10 })
    await clock.advance(1000)
    await starting
    expect(Math.abs(fleet.figures().connected - 10)).toBeLessThan(5)
    await clock.advance(1500)
    expect(fleet.figures()).toMatchObject({ devices: 20, connected: 20 })
    const before = fleet.figures().sent
    await clock.advance(10_000)
    expect(Math.abs(fleet.figures().sent - before - 200)).toBeLessThan(10)

    fleet.set({ rate: 0.1 })
    await clock.advance(2000)
    fleet.set({ devices: 5, qos: 2, rate: 4, payload: 'kilobyte' })
    await clock.advance(1000)
    expect(fleet.figures()).toMatchObject({ devices: 5, connected: 5 })
    expect(fleet.figures().sent - before - 200).toBeGreaterThan(15)
    await clock.advance(5000)
    const [device] = fleet.devices
    fleet.halt(device)
    await clock.advance(1000)
    expect(device.state).toBe('closed')
    expect(fleet.figures().devices).toBe(4)
    fleet.resume(device)
    await clock.advance(1000)
    expect(device.state).toBe('connected')

    await stopped(made)
    const { sent, ...figures } = fleet.figures()
    const nothing = { lost: 0, twice: 0, repeated1: 0, open: 0, awaited: 0 }
    expect(figures).toMatchObject({ acknowledged: sent, arrived: sent, ...nothing })
    expect(each(made, 'state')).toEqual(Array(20).fill('closed'))
  })

  it('starts again where it was, with numbers that go on', async () => {
    const made = await started({ devices: 3 })
    const { clock, fleet, broker } = made
    const stopping = fleet.stop()
    await clock.advance(10_000)
    await stopping
    const { sent } = fleet.figures()
    const starting = fleet.start({})
    await clock.advance(3000)
    await starting
    expect(fleet.figures().sent).toBeGreaterThan(sent + 10)
    expect(fleet.figures()).toMatchObject({ connected: 3, lost: 0, repeated1: 0 })
    expect(broker.violations).toBe(0)
    await stopped(made)
  })

  it('stops while the broker is stalled and the consumer is not there yet', async () => {
    const made = world()
    const starting = made.fleet.start({ devices: 3 })
    made.faults.begin('stall')
    await made.clock.advance(100)
    expect(made.fleet.state).toBe('running')
    made.faults.endAll()
    await stopped(made)
    await starting
    expect(made.fleet.figures().devices).toBe(0)
  })

  it('stops with what is in flight', async () => {
    const made = await started({ devices: 10, rate: 20, qos: 2 }, '200 ms')
    expect(made.fleet.figures().open).toBeGreaterThan(50)
    await stopped(made)
    const { sent, ...figures } = made.fleet.figures()
    expect(figures).toMatchObject({ acknowledged: sent, arrived: sent, unsure: 0 })
  })

  it('holds back while nothing is acknowledged', async () => {
    const made = await started({ devices: 1, rate: 100 })
    made.faults.begin('stall')
    await made.clock.advance(1900)
    expect(made.fleet.figures()).toMatchObject({ open: 50 })
    expect(made.fleet.figures().heldBack).toBeGreaterThan(100)
    await stopped(made)
  })
})

describe('a fault', () => {
  /** What the journal says of each, so that something did happen. */
  const traces: Readonly<Record<string, string>> = {
    cutAll: 'connection lost: ERR_CONNECTION_LOST',
    cutSome: 'connection lost: ERR_CONNECTION_LOST',
    silence: 'connection lost: ERR_KEEPALIVE_TIMEOUT',
    stall: 'over: stall the broker',
    takeOver: 'connection lost: ERR_SESSION_TAKEN_OVER, Session taken over',
    refuse: 'no connection: ERR_CONNECT_REFUSED, Not authorized',
    restart: 'the consumer lost its connection: ERR_CONNECTION_LOST',
    forget: 'session lost by the broker',
    acknowledgements: 'connection lost: ERR_CONNECTION_LOST',
  }
  const names = Object.keys(traces)

  it('has a button each', () => {
    expect(Object.keys(modules.faults)).toEqual(names)
  })

  it.each(names.flatMap((name) => [1, 2].map((qos) => [name, qos as 1 | 2] as const)))(
    '%s at QoS %i: all come back, nothing acknowledged is lost, nothing comes twice at QoS 2',
    async (name, qos) => {
      const made = await started(
        { devices: 10, rate: 10, qos, payload: qos === 1 ? 'json' : 'binary' },
        '20 ms',
      )
      const { clock, fleet, faults } = made
      expect(fleet.figures().connected).toBe(10)
      faults.begin(name)
      await clock.advance(1000)
      // Without answers everything that was sent is in flight.
      if (name === 'stall') expect(fleet.figures().open).toBeGreaterThan(80)
      fleet.set({ rate: 2 })
      await clock.advance(9000)
      expect(faults.isRunning(name)).toBe(false)
      expect(fleet.figures()).toMatchObject({ connected: 10, lost: 0, twice: 0 })
      if (name !== 'stall')
        expect(Math.max(...(each(made, 'connects') as number[]))).toBeGreaterThan(1)
      expect(texts(made)).toContain(traces[name])
      expect(texts(made)).toContainEqual(
        expect.stringMatching(/^all connected, \d+\.\d s after the fault$/),
      )
      await stopped(made)
      const { sent, acknowledged, arrived, unsure, lost, twice } = fleet.figures()
      expect([lost, twice, acknowledged + unsure]).toEqual([0, 0, sent])
      expect(arrived).toBeGreaterThanOrEqual(acknowledged)
      if (name !== 'forget') expect(unsure).toBe(0)
    },
  )

  it('takes nothing but the link of the client id that was taken over', async () => {
    const made = await started({ devices: 3 })
    made.faults.begin('takeOver')
    await made.clock.advance(5000)
    expect(each(made, 'lastError')).toEqual([
      expect.stringContaining('ERR_SESSION_TAKEN_OVER'),
      undefined,
      undefined,
    ])
    await stopped(made)
  })

  it('over slow lines in pieces is survived as well', async () => {
    const made = await started({ devices: 5, qos: 2 }, '20 ms, in pieces of 7 bytes')
    expect(made.fleet.figures().connected).toBe(5)
    for (const name of ['cutAll', 'restart']) {
      made.faults.begin(name)
      await made.clock.advance(10_000)
    }
    expect(made.fleet.figures()).toMatchObject({ connected: 5, lost: 0, twice: 0 })
    await stopped(made)
  })
})

describe('the counters', () => {
  it('count as lost what was acknowledged and did not arrive, whichever came first, and nothing else', () => {
    const stream = new modules.Stream()
    for (let count = 0; count < 5; count += 1) stream.next()
    stream.arrive(1, 1)
    stream.acknowledge(1, 10)
    stream.acknowledge(2, 20)
    stream.arrive(2, 1)
    stream.acknowledge(3, 30)
    stream.fail(4, 'unknown')
    expect(stream).toMatchObject({ awaited: 1, lost: 0, unsure: 1, open: 1 })
    stream.giveUp(29)
    expect(stream.lost).toBe(0)
    stream.giveUp(30)
    expect(stream).toMatchObject({ awaited: 0, lost: 1 })
  })

  it('count what comes twice, and remember no more than a few thousand numbers', () => {
    const stream = new modules.Stream()
    stream.next()
    expect([stream.arrive(1, 2), stream.arrive(1, 2), stream.repeated]).toEqual([true, false, 1])
    const long = new modules.Stream()
    for (let count = 0; count < 5000; count += 1) long.acknowledge(long.next(), count)
    expect(long).toMatchObject({ awaited: 2000, lost: 3000 })
  })
})

describe('the figures of the fleet', () => {
  it('tell what the consumer never got, and what it got twice', async () => {
    const made = await started({ devices: 2, qos: 2, rate: 5 })
    const { fleet } = made
    const arrived = fleet.arrived.bind(fleet)
    let count = 0
    fleet.arrived = (message: unknown, said: unknown) => {
      count += 1
      if (count === 3) return
      arrived(message, said)
      if (count === 5) arrived(message, said)
    }
    await made.clock.advance(3000)
    expect(fleet.figures()).toMatchObject({ lost: 0, awaited: 1, twice: 1 })
    // While the consumer is connected, ten seconds are enough for any message.
    await made.clock.advance(10_000)
    expect(fleet.figures()).toMatchObject({ lost: 1, twice: 1 })
    await stopped(made)
  })
})

describe('examples/simulator/serve.js', () => {
  it('prints where it serves the page: one policy lets nothing out, the other WebSockets only', async () => {
    const program = new Program('simulator/serve.js', ['--port', '0'])
    await program.prints('The simulator is at')
    const [url] = /http:\S+/.exec(program.output) ?? []
    const policy = async (query: string) =>
      (await fetch(`${url}${query}`)).headers.get('content-security-policy')
    for (const part of [
      "default-src 'none'; script-src 'self'; style-src 'self'",
      "connect-src 'none'",
    ])
      expect(await policy('')).toContain(part)
    expect(await policy('?url=ws://127.0.0.1:1')).toContain('connect-src ws: wss:')
    for (const missing of ['package.json', '../package.json', 'serve.js', '__proto__'])
      expect((await fetch(`${url}${missing}`)).status).toBe(404)
    program.signal('SIGKILL')
    await program.ending
  })
})

describe('the journal', () => {
  it('is bounded, and counts what happens many times in a moment', () => {
    let now = 0
    const journal = new modules.Journal(() => now)
    for (let count = 0; count < 300; count += 1) journal.note('link lost')
    expect(journal.entries).toMatchObject([{ text: 'link lost', count: 300 }])
    now = 2000
    journal.note('link lost')
    expect(journal.entries).toMatchObject([{ count: 1 }, { count: 300 }])
    for (let count = 0; count < 300; count += 1) journal.note(`event ${count}`)
    expect(journal.entries).toHaveLength(200)
  })
})

describe('templates', () => {
  const known = {
    device: 7,
    n: 3,
    qos: 1,
    at: 0,
    date: 0,
    random: () => 0.5,
    prefix: 'simulator/x',
  }

  it('are filled in, and leave the braces of JSON alone', () => {
    const fill = (text: string): string => modules.compile(text)(known)
    expect(fill('{ "a": {device}, "b": [{n}, {random}], "c": {} }')).toBe(
      '{ "a": 7, "b": [3, 0.5000], "c": {} }',
    )
    expect(fill('{prefix}/{device}/{qos}')).toBe('simulator/x/7/1')
    expect(fill('{time} {ms} {value}')).toBe('1970-01-01T00:00:00.000Z 0 20')
    expect(fill('{A} {1} {device')).toBe('{A} {1} {device')
    expect(
      JSON.parse(
        fill('{ "device": {device}, "n": {n}, "celsius": {value}, "humidity": {random} }'),
      ),
    ).toMatchObject({ device: 7, n: 3 })
  })

  it('say what is wrong with them', () => {
    for (const name of ['nobody', 'constructor'])
      expect(modules.problemOf(`{device} {${name}}`)).toBe(`There is no placeholder {${name}}.`)
    expect(modules.problemOf('x'.repeat(20_000))).toContain('16,384')
    expect(modules.problemOf('{"a":{random}}')).toBeUndefined()
    for (const topic of ['', 'a/+', '#', 'a\0', '$SYS/x', 'a/{b}'])
      expect(modules.topicProblemOf(topic), topic).toBeTypeOf('string')
    expect(modules.topicProblemOf('plant/{device}')).toBeUndefined()
  })

  it('give the filter on which everything comes', () => {
    expect(modules.filterOf('{prefix}/{device}/{qos}', 'simulator/x')).toBe('simulator/x/+/+')
    expect(modules.filterOf('plant/dev-{device}/{n}-{random}/state', 'simulator/x')).toBe(
      'plant/+/+/state',
    )
  })

  it.each([0, 1, 2] as const)(
    'of topic and payload are published at QoS %s, and every message is told apart by its mark',
    async (qos) => {
      const made = await started({
        devices: 5,
        qos,
        payload: 'template',
        topic: 'plant/{device}/reading',
        template: 'no number here',
      })
      await made.clock.advance(6000)
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
    },
  )
})

describe('devices that share connections', () => {
  it('have so many and no more, break and come back together, and lose nothing', async () => {
    const made = await started({ devices: 20, qos: 2 }, 'direct', 7)
    const { clock, fleet, broker, faults } = made
    expect(fleet.figures()).toMatchObject({ devices: 20, connected: 20 })
    // The consumer has one.
    expect(broker.links.size).toBe(8)
    expect(each(made, 'sharing')).toEqual([
      2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2,
    ])
    broker.links.cut((owner: string) => owner === fleet.devices[3]?.clientId)
    await clock.advance(100)
    expect(
      each(made, 'state').flatMap((state, index) => (state === 'connected' ? [] : [index])),
    ).toEqual([3, 10, 17])
    await clock.advance(8000)
    for (const fault of [
      'cutAll',
      'forget',
      'takeOver',
      'silence',
      'acknowledgements',
      'restart',
    ]) {
      faults.begin(fault)
      await clock.advance(15_000)
      expect(fleet.figures(), fault).toMatchObject({
        devices: 20,
        connected: 20,
        lost: 0,
        twice: 0,
      })
    }
    await stopped(made)
    expect(fleet.figures()).toMatchObject({ lost: 0, twice: 0, open: 0, awaited: 0 })
    expect(each(made, 'state')).toEqual(Array(20).fill('closed'))
  })

  it('stop one by one, and the last takes the connection along', async () => {
    const made = await started({ devices: 3, qos: 1 }, 'direct', 1)
    const { clock, fleet, broker } = made
    const [first, second, third] = fleet.devices
    fleet.halt(second)
    await clock.advance(1000)
    expect([first.state, second.state, third.state, broker.links.size]).toEqual([
      'connected',
      'closed',
      'connected',
      2,
    ])
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
