/**
 * The demo as a newcomer runs it: a process of its own, judged by its exit code and by what it prints.
 *
 * That the check of the demo can fail is shown by faults injected on the way.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, missingForMosquitto, startMosquitto } from '../../real/brokers.js'
import { requireDist } from '../fixture.js'
import { exampleModule, Program } from './program.js'

beforeAll(requireDist)

const demo = (args: string, url?: string) =>
  new Program('demo/main.js', args.split(' ').filter(Boolean), url)
/** What it prints until it ends with this code. */
const output = (code: number, args: string, url?: string): Promise<string> =>
  demo(args, url).ends(code)

describe('the demo with its own broker', () => {
  it('ends with 0 when everything arrived once, and says so', async () => {
    const printed = await output(0, '--duration 2')
    expect(printed).toMatch(/^[\d,]+ messages in [\d.]+ s \([\d,]+\/s\): 0 missing, 0 twice\.$/m)
    expect(printed).toMatch(
      /^\d+ s {3}[\d,]+ messages\/s {3}latency p50 .+ {3}missing 0 {2}twice 0$/m,
    )
    for (const qos of [0, 1, 2])
      expect(printed).toMatch(new RegExp(`^QoS ${qos} +([1-9][\\d,]*) +\\1 +0 +0$`, 'm'))
    expect(printed).toContain('OK: nothing lost, nothing twice.')
  })

  it('fails when messages are lost on the way', async () => {
    const verdict = /^FAILED: \d+ missing at QoS 0, \d+ missing at QoS 1, \d+ missing at QoS 2\.$/m
    expect(await output(1, '--duration 1 --inject-loss 50')).toMatch(verdict)
  })

  it('fails when messages are repeated on the way', async () => {
    const printed = await output(1, '--duration 1 --inject-repeat 50')
    expect(printed).toMatch(/^FAILED: \d+ twice at QoS 0, \d+ twice at QoS 2\.$/m)
    expect(printed).toContain('0 missing')
  })

  it('ends cleanly within 5 seconds of Ctrl-C', async () => {
    const program = demo('')
    await program.prints(' messages/s   latency')
    const start = performance.now()
    expect(await program.stop()).toContain('0 missing, 0 twice.')
    expect(performance.now() - start).toBeLessThan(5000)
  })

  it('ends at once at the second Ctrl-C', async () => {
    // With a message missing it would wait another second for it.
    const program = demo('--inject-loss 2')
    await program.prints(' messages/s   latency')
    program.signal('SIGINT')
    await program.prints('Stopping')
    await program.stop('SIGINT', 130)
  })

  it('takes the number of devices and their rate', async () => {
    const printed = await output(0, '--duration 1 --devices 2 --rate 10')
    expect(printed).toContain('Devices    2 (each 10 messages/s')
    expect(Number(/^(\d+) messages in /m.exec(printed)?.[1])).toBeLessThan(30)
  })
})

describe('the arguments of the demo', () => {
  it('are explained by --help', async () => {
    const printed = await output(0, '--help')
    for (const name of [
      'devices',
      'rate',
      'duration',
      'inject-loss',
      'inject-repeat',
      'port',
      'no-dashboard',
      'help',
    ])
      expect(printed).toContain(`--${name}`)
    expect(printed).toContain('MQTT_URL')
  })

  it.each([
    ['--rate many', '', "--rate takes a number from 0.1 to 10,000, not 'many';"],
    ['', 'gopher://127.0.0.1', 'no transport for gopher:'],
  ])('%s with MQTT_URL=%s end it with 2 and a reason', async (args, url, reason) => {
    const printed = await output(2, args, url)
    expect(printed).toContain(reason)
    expect(printed).toContain('--help')
  })

  it.each([
    ['--speed 3', "Unknown option '--speed';"],
    ['fast', "Unexpected argument 'fast';"],
    ['--rate', '--rate needs a value'],
    ['--rate=', '--rate takes a number'],
    ['--duration 0', '--duration takes a number'],
    ['--devices 1.5', '--devices takes a whole number from 1 to 1,000'],
    ['--devices 1001', '--devices takes a whole number from 1 to 1,000'],
    ['--inject-loss -1', '--inject-loss takes a whole number'],
    ['--inject-repeat 0', '--inject-repeat takes a whole number'],
  ])('%s is refused', async (args, reason) => {
    const { readArguments, UsageError } = await exampleModule('demo/arguments.js')
    const read = () => readArguments(args.split(' '), {})
    expect(read).toThrow(UsageError)
    expect(read).toThrow(reason)
  })

  it('have defaults, and an empty MQTT_URL is none', async () => {
    const { readArguments, UsageError } = await exampleModule('demo/arguments.js')
    const faults = { loseEvery: 0, repeatEvery: 0 }
    const defaults = {
      help: false,
      url: undefined,
      devices: 20,
      rate: 50,
      seconds: undefined,
      ...faults,
      dashboard: true,
      port: 8080,
    }
    expect(readArguments([], { MQTT_URL: '' })).toEqual(defaults)
    const given = { ...defaults, url: 'ws://broker', seconds: 0.5 }
    expect(readArguments(['--duration', '0.5'], { MQTT_URL: 'ws://broker' })).toEqual(given)
    expect(() => readArguments([], { MQTT_URL: 'nowhere' })).toThrow(UsageError)
  })
})

describe('the demo with another broker', () => {
  it('ends with 1 and the reason when it is not there', async () => {
    expect(await output(1, '--duration 1', 'mqtt://127.0.0.1:1')).toContain('ECONNREFUSED')
  })

  const missing = missingForMosquitto()
  if (missing !== undefined) {
    it(`mosquitto: ${missing} not found`, () => expect(process.env['CI']).toBeUndefined())
    return
  }

  let broker: Broker
  beforeAll(async () => {
    broker = await startMosquitto()
    return () => broker.stop()
  })

  it.each<[string, 'TCP' | 'WebSocket', number, RegExp]>([
    ['', 'TCP', 0, /0 missing, 0 twice\./],
    ['', 'WebSocket', 0, /0 missing, 0 twice\./],
    [' --inject-loss 50', 'TCP', 1, /^FAILED: \d+ missing at QoS 1, \d+ missing at QoS 2\.$/m],
    [' --inject-repeat 50', 'TCP', 1, /^FAILED: \d+ twice at QoS 0, \d+ twice at QoS 2\.$/m],
  ])('over mosquitto:%s over %s', async (fault, transport, code, verdict) => {
    expect(await output(code, `--duration 2${fault}`, broker.urls[transport])).toMatch(verdict)
  })

  it('ends with 1 when the broker dies', async () => {
    const mortal = await startMosquitto()
    afterAll(() => mortal.stop())
    const program = demo('', mortal.urls.TCP)
    await program.prints(' messages/s   latency')
    await mortal.kill()
    expect(await program.ends(1)).toContain('The demo broke off: ')
  })
})
