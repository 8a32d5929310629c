/** The larger examples: each runs as a newcomer starts it, does its job, and fails when the job is not done. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { connect, type Message } from '../../../src/client/node.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { startMosquitto, withMosquitto } from '../../real/brokers.js'
import { requireDist } from '../fixture.js'
import { exampleModule, Program } from './program.js'
import type { Settings } from './simulator.js'

await requireDist()

describe('npm start', () => {
  const output = (code: number, args: string, url?: string): Promise<string> =>
    new Program('demo/main.js', ['--no-dashboard', ...args.split(' ')], url).ends(code)

  it('ends with 0 when everything arrived once, and counts it for each QoS', async () => {
    const printed = await output(0, '--duration 1 --devices 4')
    for (const qos of [0, 1, 2])
      expect(printed).toMatch(new RegExp(`^QoS ${qos} +([1-9][\\d,]*) +\\1 +0 +0$`, 'm'))
    expect(printed).toContain('OK: nothing lost, nothing twice.')
  })

  it('fails when messages are lost or repeated on the way, or no broker is there', async () => {
    expect(await output(1, '--duration 1 --inject-loss 50')).toMatch(
      /^FAILED: \d+ missing at QoS 0, \d+ missing at QoS 1, \d+ missing at QoS 2\.$/m,
    )
    const repeated = await output(1, '--duration 1 --inject-repeat 50')
    expect(repeated).toMatch(/^FAILED: \d+ twice at QoS 0, \d+ twice at QoS 2\.$/m)
    expect(repeated).toContain('0 missing')
    expect(await output(1, '--duration 1', 'mqtt://127.0.0.1:1')).toContain('ECONNREFUSED')
  })

  it('ends cleanly at Ctrl-C, and at once at the second', async () => {
    const once = new Program('demo/main.js')
    await once.prints(' messages/s   latency')
    expect(await once.stop()).toContain('0 missing, 0 twice.')
    // With a message missing it would wait another second for it.
    const twice = new Program('demo/main.js', ['--inject-loss', '2'])
    await twice.prints(' messages/s   latency')
    twice.signal('SIGINT')
    await twice.prints('Stopping')
    await twice.stop('SIGINT', 130)
  })

  withMosquitto(['TCP', 'WebSocket'], () => {
    it.each(['TCP', 'WebSocket'] as const)('works with mosquitto over %s', async (transport) => {
      const broker = await startMosquitto()
      try {
        const printed = await output(0, '--duration 1', broker.urls[transport])
        expect(printed).toMatch(/0 missing, 0 twice\./)
      } finally {
        await broker.stop()
      }
    })
  })

  it.each([
    ['--rate many', "--rate takes a number from 0.1 to 10,000, not 'many';"],
    ['fast', "Unexpected argument 'fast';"],
    ['--rate=', '--rate takes a number'],
    ['--devices 1.5', '--devices takes a whole number from 1 to 1,000'],
    ['--devices 1001', '--devices takes a whole number from 1 to 1,000'],
  ])('refuses %s', async (args, reason) => expect(await output(2, args)).toContain(reason))
})

describe('npm run fleet', () => {
  async function play(url?: string): Promise<void> {
    const args = ['--jobs', '1500', '--rate', '300']
    const output = await new Program('fleet/main.js', args, url, {}, 50_000).ends()
    expect(output).toContain(
      'Each job was done at least once, and twice only what the killed worker had in hand.',
    )
    for (const figure of [/^published +1,500\b/m, /^lost +0\b/m]) expect(output).toMatch(figure)
    for (const change of ['2 is killed', '2 is back', '4 is added', '1 has left'])
      expect(output).toContain(`worker-${change}`)
  }

  it('does each job, and twice only what the killed worker had in hand', () => play())

  withMosquitto(['TCP'], () => {
    it('works with mosquitto, which loses what belonged to a session that ended', async () => {
      const broker = await startMosquitto()
      await play(broker.urls.TCP).finally(() => broker.stop())
    })
  })

  it('finds a job that is lost, or done twice though in no hand of a killed worker', async () => {
    const { Count } = await exampleModule('fleet/count.js')
    const count = new Count(2)
    for (const job of ['a', 'b']) count.handlePublished(job)
    count.handleDone('a', 'one')
    expect(count.isFlawless).toBe(false)
    count.handleDone('b', 'one')
    expect(count.isFlawless).toBe(true)
    count.handleDone('a', 'two')
    expect(count.isFlawless).toBe(false)
  })
})

describe('npm run gateway', () => {
  it('loses nothing and counts no piece twice, through a day without network, two pulled plugs and a broker that comes and goes', async () => {
    const output = await new Program('gateway/main.js', ['--quick'], '', {}, 45_000).ends()
    expect(output).toMatch(/^lost +0 +0$/m)
    expect(output).toMatch(/^twice +[\d,]+ +0$/m)
    expect(output.match(/^\d\d:\d\d {2}.*plug/gm)).toHaveLength(2)
    expect(output).toContain('Nothing that was taken is lost, and no piece was counted twice.')
  })

  it.each<[string, boolean, (tally: { [name: string]: (given?: unknown) => void }) => void]>([
    ['nothing', true, () => {}],
    ['a measurement twice', true, (tally) => tally['handleDelivered']?.(delivered('oven'))],
    ['a piece twice', false, (tally) => tally['handleDelivered']?.(delivered('packer-1'))],
    ['a lost measurement', false, (tally) => tally['handleTaken']?.(['oven', 2])],
    ['one that was given up', false, (tally) => tally['handleGivenUp']?.()],
  ])('with %s, its count is flawless: %s', async (_what, flawless, happen) => {
    const { Tally } = await exampleModule('gateway/tally.js')
    const tally = new Tally()
    for (const sensor of ['oven', 'packer-1']) {
      tally.handleTaken([sensor, 1])
      tally.handleDelivered(delivered(sensor))
    }
    happen(tally)
    expect(tally.isFlawless).toBe(flawless)
  })
  const delivered = (sensor: string) => ({ sensor, number: 1 })
})

it('npm run offline-form serves the page under a policy that lets nothing else in, and prints each note', async () => {
  const program = new Program('offline-form/serve.js', ['--port', '0', '--broker-port', '0'])
  await program.prints('Ctrl-C stops')
  const [, address = '', url = ''] =
    /The form is at (http:\S+?)\?url=(ws:\S+)/.exec(program.output) ?? []
  const page = await fetch(address)
  expect(page.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self';/,
  )
  for (const name of ['style.css', 'form.js', 'service-worker.js'])
    expect((await fetch(new URL(name, address))).status).toBe(200)
  const client = await connect(url)
  await client.publish('inspections/notes', '{"place":"pump"}', { qos: 2 })
  await program.prints('inspections/notes {"place":"pump"}')
  await client.disconnect()
  await program.stop()
})

describe('the server of the dashboard', () => {
  let site = { origin: '', stop: async () => {} }
  beforeAll(async () => {
    site = await (await exampleModule('dashboard/serve.js')).serveDashboard({ port: 1024 })
    return () => site.stop()
  })

  /** Asks for a path just as it is written: `fetch` would tidy it up. */
  async function ask(path: string, method = 'GET'): Promise<IncomingMessage> {
    const { port } = new URL(site.origin)
    const [response] = await once(
      request({ host: '127.0.0.1', port, path, method }).end(),
      'response',
    )
    return response.resume()
  }

  it.each([
    ['/?url=ws://127.0.0.1:1&topic=%23', 'text/html; charset=utf-8'],
    ['/dashboard.js', 'text/javascript; charset=utf-8'],
    ['/dashboard.css', 'text/css; charset=utf-8'],
    ['/icon.svg', 'image/svg+xml'],
  ])('gives %s, under a policy that lets nothing in from elsewhere', async (path, type) => {
    const { statusCode, headers } = await ask(path)
    expect([statusCode, headers['content-type']]).toEqual([200, type])
    expect(headers['x-content-type-options']).toBe('nosniff')
    const policy = String(headers['content-security-policy']).split('; ')
    expect(policy).toEqual(
      expect.arrayContaining([
        ...["default-src 'none'", "script-src 'self'", "style-src 'self'"],
        ...["frame-ancestors 'none'", "connect-src 'self' ws: wss:"],
      ]),
    )
  })

  it.each([
    ...['/package.json', '/serve.js', '/../../package.json', '/..%2f..%2fpackage.json'],
    ...['/..\\..\\package.json', '//etc/passwd', '/icon.svg/../../../package.json'],
    ...['/icon.svg%00.html', '/__proto__', 'http://127.0.0.1/icon.svg'],
  ])('has nothing at %s', async (path) => expect((await ask(path)).statusCode).toBe(404))

  it('reads only', async () => {
    expect(await ask('/', 'POST')).toMatchObject({
      statusCode: 405,
      headers: { allow: 'GET, HEAD' },
    })
  })
})

describe("the simulator's fleet, over its broker in memory, under virtual time", async () => {
  const files = ['fleet', 'faults', 'brokers', 'ledger', 'scenario', 'report']
  const loaded = await Promise.all(files.map((name) => exampleModule(`simulator/${name}.js`)))
  const modules = Object.assign({}, ...loaded)

  async function started(settings: Partial<Settings>, line: string, scenario?: unknown) {
    const clock = new VirtualClock()
    const broker = modules.memoryBroker({ clock })
    let clients = 0
    type Parts = ConstructorParameters<typeof BaseClient>
    const makeClient = (endpoint: Parts[1], options: Parts[2]): BaseClient =>
      new BaseClient(virtualPlatform(clock, ++clients), endpoint, options)
    const { random } = virtualPlatform(clock, 7)
    const fleet = new modules.Fleet({ makeClient, broker, clock, name: 'test', random })
    broker.setLine(line)
    const starting = fleet.start({ rate: 2, ramp: 1000, ...settings }, scenario)
    await clock.advance(2000)
    await starting
    const faults = new modules.Faults(fleet)
    /** Stops it: everything settled, and no timer left. */
    async function stop(): Promise<void> {
      const stopping = fleet.stop()
      await clock.advance(15_000)
      await stopping
      expect([fleet.state, broker.links.size, broker.violations]).toEqual(['stopped', 0, 0])
      broker.close()
      expect(clock.pending).toBe(0)
    }
    return { clock, broker, fleet, faults, makeClient, stop }
  }

  it('publishes at its rate, follows its settings, and stops with what is in flight', async () => {
    const { clock, fleet, stop } = await started({ devices: 20, rate: 1, qos: 1 }, '200 ms')
    expect(fleet.figures()).toMatchObject({ devices: 20, connected: 20 })
    const before = fleet.figures().sent
    await clock.advance(10_000)
    expect(Math.abs(fleet.figures().sent - before - 200)).toBeLessThan(10)
    fleet.set({ devices: 5, qos: 2, rate: 20, payload: 'kilobyte' })
    await clock.advance(2000)
    expect(fleet.figures()).toMatchObject({ devices: 5, connected: 5 })
    expect(fleet.figures().open).toBeGreaterThan(20)
    await stop()
    const { sent, ...figures } = fleet.figures()
    expect(figures).toMatchObject({ acknowledged: sent, arrived: sent, lost: 0, twice: 0, open: 0 })
  })

  it.each(Object.keys(modules.faults))(
    'all devices come back from %s; nothing acknowledged is lost, nothing comes twice at QoS 2',
    async (name) => {
      const template = { payload: 'template', topic: 'plant/{device}/reading', template: 'text' }
      const { clock, fleet, faults, stop } = await started(
        { devices: 10, rate: 10, qos: 2, ...template },
        '20 ms, in pieces of 7 bytes',
      )
      faults.begin(name)
      await clock.advance(1000)
      fleet.set({ rate: 2 })
      await clock.advance(14_000)
      expect(fleet.figures()).toMatchObject({ connected: 10, lost: 0, twice: 0 })
      expect(fleet.journal.entries).toContainEqual(
        expect.objectContaining({ text: expect.stringMatching(/^all connected, .* the fault$/) }),
      )
      await stop()
      const { sent, acknowledged, unsure, lost, twice } = fleet.figures()
      expect([lost, twice, acknowledged + unsure]).toEqual([0, 0, sent])
      if (name !== 'forget') expect(unsure).toBe(0)
    },
  )

  it('does what a scenario says, as the command line does with this seed, and loses nothing', async () => {
    const options = { seed: 7, prefix: 'p/', began: 1_700_000_000_000, devices: 20 }
    const text = JSON.stringify(modules.scenarios.get('trucks'))
    const made = () => modules.scenarioOf(text, options)
    // The devices start slowly, so that the reader is there before the scenario begins.
    const { clock, broker, fleet, makeClient, stop } = await started({ ramp: 5 }, 'direct', made())
    const dial = { transport: () => broker.dial('reader') }
    const reader = makeClient({ url: 'mqtt://memory', ...dial }, { clientId: 'reader' })
    const seen = new Map<string, string[]>()
    void reader.connect()
    const listening = reader.listen('p/#', ({ topic, payload, retain }: Message) => {
      if (!retain) seen.set(topic, [...(seen.get(topic) ?? []), new TextDecoder().decode(payload)])
    })
    await clock.advance(1000)
    await listening
    await clock.advance(12 * 60_000)
    const { lost, twice, sent, arrived } = fleet.figures()
    expect([lost, twice]).toEqual([0, 0])
    expect(sent).toBeGreaterThan(10_000)
    expect(arrived).toBeGreaterThan(sent - 20)
    const texts = fleet.journal.entries.map((entry: { text: string }) => entry.text)
    expect(texts).toContain('scenario: a device loses its network')
    const promised = new Map<string, string[]>()
    for (const device of made().devices)
      for (let next = device.poll(10 * 60_000); next; next = device.poll(10 * 60_000))
        promised.set(next.topic, [...(promised.get(next.topic) ?? []), next.payload])
    // Others are published when a device comes back as well, or not published while it is away.
    for (const [topic, payloads] of promised)
      if (/van-|fuel/.test(topic))
        expect(seen.get(topic)?.slice(0, payloads.length)).toEqual(payloads)
    expect(seen.get('p/fleet/truck-1/online')).toContain('false')
    void reader.disconnect()
    await stop()
    const run = { ...fleet.run, began: 0, ended: 60_000 }
    const parts = { broker: '<b>', settings: [], run, figures: fleet.figures() }
    const rest = { latency: fleet.latency, entries: fleet.journal.entries, failure: '' }
    const report = modules.reportOf({ ...parts, ...rest })
    expect(report).toContain('Nothing was lost at QoS 1 and 2, and nothing came twice at QoS 2')
    expect(report).toContain('&lt;b&gt;')
  })

  it.each([
    ['more devices than there are connections', 100_000, {}, undefined],
    [
      'more than a page has the time for',
      1000,
      { payload: 'x'.repeat(30_000) },
      /^devices: 1000 with/,
    ],
    ['topics of the broker', 5, { topic: '$SYS/x' }, /must not begin with \$/],
    ['ids of the broker', 5, { id: '$d-{index}' }, /an id that begins with \$/],
  ] as const)('a description with %s', (_name, count, given, problem) => {
    const { topic, id, payload } = { topic: '{id}/a', id: 'd-{index}', payload: 'x', ...given }
    const topics = [{ topic, every: '1s', payload }]
    const text = JSON.stringify({ name: 'n', devices: [{ name: 'd', id, count, topics }] })
    const found = modules.read(text, { seed: 1, prefix: '', devices: undefined }, 1000)
    if (problem === undefined) expect(found).toMatchObject({ count, devices: 1000 })
    else expect(found.problem).toMatch(problem)
  })

  it('counts as lost what was acknowledged and did not arrive, and what comes twice', () => {
    const stream = new modules.Stream()
    for (let count = 0; count < 4; count += 1) stream.next()
    stream.arrive(1, 1)
    stream.acknowledge(1, 10)
    stream.acknowledge(2, 20)
    expect(stream.arrive(2, 2)).toBe(true)
    expect(stream.arrive(2, 2)).toBe(false)
    stream.acknowledge(3, 30)
    stream.fail(4, 'unknown')
    expect(stream).toMatchObject({ awaited: 1, lost: 0, unsure: 1, repeated: 1 })
    stream.giveUp(30)
    expect(stream).toMatchObject({ awaited: 0, lost: 1 })
    // It was late.
    stream.arrive(3, 1)
    expect(stream).toMatchObject({ lost: 0, arrived: 3 })
  })
})
