/**
 * The demo as a newcomer runs it: a process of its own, judged by its exit code and by what it prints.
 *
 * That the check of the demo can fail is shown by faults injected on the way.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, missingForMosquitto, startMosquitto } from '../../real/brokers.js'
import { requireDist } from '../fixture.js'
import { demoModule, Program } from './program.js'

interface Arguments {
  readonly UsageError: new () => Error
  readonly readArguments: (args: readonly string[], environment: Readonly<Record<string, string>>) => unknown
}

beforeAll(requireDist)

const demo = (args: string, url?: string) => new Program('demo/main.js', args.split(' ').filter(Boolean), url)
const ending = (args: string, url?: string) => demo(args, url).ending

describe('the demo with its own broker', () => {
  it('ends with 0 when everything arrived once, and says so', async () => {
    const { code, output } = await ending('--duration 2')
    expect(output).toMatch(/^[\d,]+ messages in [\d.]+ s \([\d,]+\/s\): 0 missing, 0 twice\.$/m)
    expect(output).toMatch(/^\d+ s {3}[\d,]+ messages\/s {3}latency p50 .+ {3}missing 0 {2}twice 0$/m)
    for (const qos of [0, 1, 2]) expect(output).toMatch(new RegExp(`^QoS ${qos} +([1-9][\\d,]*) +\\1 +0 +0$`, 'm'))
    expect(output).toContain('OK: nothing lost, nothing twice.')
    expect(code).toBe(0)
  })

  it('fails when messages are lost on the way', async () => {
    const { code, output } = await ending('--duration 1 --inject-loss 50')
    expect(output).toMatch(/^FAILED: \d+ missing at QoS 0, \d+ missing at QoS 1, \d+ missing at QoS 2\.$/m)
    expect(code).toBe(1)
  })

  it('fails when messages are repeated on the way', async () => {
    const { code, output } = await ending('--duration 1 --inject-repeat 50')
    expect(output).toMatch(/^FAILED: \d+ twice at QoS 0, \d+ twice at QoS 2\.$/m)
    expect(output).toContain('0 missing')
    expect(code).toBe(1)
  })

  it('ends cleanly within 5 seconds of Ctrl-C', async () => {
    const program = demo('')
    await program.prints(' messages/s   latency')
    const start = performance.now()
    program.signal('SIGINT')
    const { code, output } = await program.ending
    expect(performance.now() - start).toBeLessThan(5000)
    expect(output).toContain('0 missing, 0 twice.')
    expect(code).toBe(0)
  })

  it('ends at once at the second Ctrl-C', async () => {
    // With a message missing it would wait another second for it.
    const program = demo('--inject-loss 2')
    await program.prints(' messages/s   latency')
    program.signal('SIGINT')
    await program.prints('Stopping')
    program.signal('SIGINT')
    expect((await program.ending).code).toBe(130)
  })

  it('takes the number of devices and their rate', async () => {
    const { code, output } = await ending('--duration 1 --devices 2 --rate 10')
    expect(output).toContain('Devices    2 (each 10 messages/s')
    expect(Number(/^(\d+) messages in /m.exec(output)?.[1])).toBeLessThan(30)
    expect(code).toBe(0)
  })
})

describe('the arguments of the demo', () => {
  it('are explained by --help', async () => {
    const { code, output } = await ending('--help')
    for (const name of ['devices', 'rate', 'duration', 'inject-loss', 'inject-repeat', 'port', 'no-dashboard', 'help'])
      expect(output).toContain(`--${name}`)
    expect(output).toContain('MQTT_URL')
    expect(code).toBe(0)
  })

  it.each([
    ['--rate many', '', "--rate takes a number from 0.1 to 10,000, not 'many';"],
    ['', 'gopher://127.0.0.1', 'no transport for gopher:'],
  ])('%s with MQTT_URL=%s end it with 2 and a reason', async (args, url, reason) => {
    const { code, output } = await ending(args, url)
    expect(output).toContain(reason)
    expect(output).toContain('--help')
    expect(code).toBe(2)
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
    const { readArguments, UsageError } = await demoModule<Arguments>('arguments.js')
    const read = () => readArguments(args.split(' '), {})
    expect(read).toThrow(UsageError)
    expect(read).toThrow(reason)
  })

  it('have defaults, and an empty MQTT_URL is none', async () => {
    const { readArguments, UsageError } = await demoModule<Arguments>('arguments.js')
    const defaults = {
      help: false,
      url: undefined,
      devices: 20,
      rate: 50,
      seconds: undefined,
      loseEvery: 0,
      repeatEvery: 0,
      dashboard: true,
      port: 8080,
    }
    expect(readArguments([], { MQTT_URL: '' })).toEqual(defaults)
    expect(readArguments(['--duration', '0.5'], { MQTT_URL: 'ws://broker' })).toEqual({ ...defaults, url: 'ws://broker', seconds: 0.5 })
    expect(() => readArguments([], { MQTT_URL: 'nowhere' })).toThrow(UsageError)
  })
})

describe('the demo with another broker', () => {
  it('ends with 1 and the reason when nobody is there', async () => {
    const { code, output } = await ending('--duration 1', 'mqtt://127.0.0.1:1')
    expect(output).toContain('ECONNREFUSED')
    expect(code).toBe(1)
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

  it.each(['TCP', 'WebSocket'] as const)('loses and repeats nothing over mosquitto and %s', async (transport) => {
    const { code, output } = await ending('--duration 2', broker.urls[transport])
    expect(output).toContain('0 missing, 0 twice.')
    expect(code).toBe(0)
  })

  it.each([
    ['--inject-loss 50', /^FAILED: \d+ missing at QoS 1, \d+ missing at QoS 2\.$/m],
    ['--inject-repeat 50', /^FAILED: \d+ twice at QoS 0, \d+ twice at QoS 2\.$/m],
  ])('fails with %s over mosquitto', async (fault, verdict) => {
    const { code, output } = await ending(`--duration 1 ${fault}`, broker.urls.TCP)
    expect(output).toMatch(verdict)
    expect(code).toBe(1)
  })

  it('ends with 1 when the broker dies', async () => {
    const mortal = await startMosquitto()
    afterAll(() => mortal.stop())
    const program = demo('', mortal.urls.TCP)
    await program.prints(' messages/s   latency')
    await mortal.kill()
    const { code, output } = await program.ending
    expect(output).toContain('The demo broke off: ')
    expect(code).toBe(1)
  })
})
