/** The small examples that run until they are stopped, as processes of their own: connections are lost, replaced and ended under them. */
import { beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/node.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../../src/testing/index.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { DisconnectPacket } from '../../../src/wire/packets.js'
import { startAedes, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually, take } from '../../real/waiting.js'
import { requireDist } from '../fixture.js'
import { Program } from './program.js'

beforeAll(requireDist)

/** The broker of `mqwire/testing`, behind a TCP port. */
async function startMemoryBroker(options: MemoryBrokerOptions) {
  const broker = new MemoryBroker(options)
  const listener = await listenTcp({}, broker.accept)
  const stop = async (): Promise<void> => {
    broker.close()
    await listener.close()
  }
  return { broker, url: listener.url, stop }
}

/** Publishes one message with a client of its own. */
async function publish(
  url: string | undefined,
  topic: string,
  payload: string,
  retain = false,
): Promise<void> {
  const client = await connect(url ?? '')
  await client.publish(topic, payload, { qos: 1, retain })
  await client.disconnect()
}

describe('examples/small/lifecycle.js', () => {
  it('tells of a loss and of the return, and goes on reading', async () => {
    const broker = await startAedes()
    try {
      const program = new Program('small/lifecycle.js', [], broker.urls.TCP)
      await program.prints('[connecting -> connected]')
      await broker.kill()
      await program.prints('Attempt 2 comes in ')
      await program.prints('It failed: ')
      await broker.live()
      await publish(broker.urls.TCP, 'lifecycle/hello', 'still there?', true)
      await program.prints('lifecycle/hello: still there?')
      const lines = (await program.stop()).trimEnd().split('\n')
      expect(lines.filter((line) => line.startsWith('['))).toEqual([
        '[idle -> connecting]',
        '[connecting -> connected]',
        '[connected -> reconnecting]',
        '[reconnecting -> connected]',
        '[connected -> disconnecting]',
        '[disconnecting -> closed]',
      ])
      expect(lines.filter((line) => line === 'Connected, with a new session')).toHaveLength(2)
      expect(lines.filter((line) => line.startsWith('Lost: '))).toHaveLength(1)
      expect(lines).toContain('Disconnected, as we wanted')
    } finally {
      await broker.stop()
    }
  })

  it('waits for a broker that is not there yet, and can be stopped while it does', async () => {
    const program = new Program('small/lifecycle.js', [], 'mqtt://127.0.0.1:1')
    await program.prints('It failed: ')
    expect(await program.stop()).toContain('-> closed]')
  })
})

describe('examples/small/failover.js', () => {
  it('counts on at the second broker when the first is gone, and leaves no number out', async () => {
    const arrived: [Set<number>, Set<number>] = [new Set(), new Set()]
    const start = (at: Set<number>) =>
      startAedes({
        authorizePublish: (_client, packet, done) => {
          if (packet.topic === 'failover/count') at.add(Number(packet.payload.toString()))
          done(null)
        },
      })
    const [first, second] = [await start(arrived[0]), await start(arrived[1])]
    try {
      const program = new Program('small/failover.js', [], '', {
        MQTT_URLS: `${first.urls.TCP} ${second.urls.TCP}`,
      })
      await program.prints(`Connected to ${first.urls.TCP}`)
      await program.prints('Counted 2')
      expect(arrived[1].size).toBe(0)
      await first.kill()
      await program.prints('Lost: ')
      await program.prints(`Connected to ${second.urls.TCP}`)
      await eventually(() => arrived[1].size >= 2, 'numbers at the second broker')
      const output = await program.stop()
      const counted = [...output.matchAll(/^Counted (\d+)$/gm)].map(([, number]) => Number(number))
      expect(counted).toEqual(counted.map((_, index) => index + 1))
      const everywhere = new Set([...arrived[0], ...arrived[1]])
      expect(counted.filter((number) => !everywhere.has(number))).toEqual([])
    } finally {
      await first.stop()
      await second.stop()
    }
  })
})

/** A page of metrics: the type of each, and the value of each sample. @throws Error for what is not the text format of Prometheus */
function parse(page: string) {
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  const lines = page.split('\n')
  expect(lines.pop()).toBe('')
  for (const line of lines) {
    const [, typed, type = ''] = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge)$/.exec(line) ?? []
    const [, name = '', labels = '', value] =
      /^([a-zA-Z_:][\w:]*)(\{[a-zA-Z_]\w*="[^"\\]*"\})? (\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(
        line,
      ) ?? []
    if (typed !== undefined && !types.has(typed)) types.set(typed, type)
    else if (types.has(name) && !samples.has(name + labels))
      samples.set(name + labels, Number(value))
    else throw new Error(`out of place: ${line}`)
  }
  return { types, samples }
}

describe('examples/small/prometheus.js', () => {
  it('serves the counters of its client as Prometheus reads them', async () => {
    const broker = await startAedes()
    const program = new Program('small/prometheus.js', [], broker.urls.TCP, {
      PORT: '0',
      TOPIC: 'metrics/#',
    })
    try {
      await program.prints('Ctrl-C stops.')
      const [address = ''] = /http:\S+\/metrics/.exec(program.output) ?? []
      const scrape = async () => {
        const response = await fetch(address)
        expect(response.headers.get('content-type')).toBe(
          'text/plain; version=0.0.4; charset=utf-8',
        )
        return parse(await response.text())
      }
      expect((await fetch(new URL('/elsewhere', address))).status).toBe(404)
      const before = await scrape()
      expect(Object.fromEntries(before.samples)).toMatchObject({
        mqwire_connected: 1,
        mqwire_received_total: 0,
      })
      expect(Object.fromEntries(before.types)).toMatchObject({
        mqwire_received_total: 'counter',
        mqwire_publishes_in_flight: 'gauge',
      })

      for (const number of ['1', '2', '3'])
        await publish(broker.urls.TCP, `metrics/${number}`, number)
      await eventually(
        async () => (await scrape()).samples.get('mqwire_received_total') === 3,
        'three messages counted',
      )
      expect((await scrape()).samples.get('mqwire_bytes_received_total')).toBeGreaterThan(
        before.samples.get('mqwire_bytes_received_total') ?? 0,
      )

      await broker.kill()
      await eventually(
        async () => (await scrape()).samples.get('mqwire_connected') === 0,
        'the loss',
      )
      expect(
        (await scrape()).samples.get('mqwire_failures_total{code="ERR_CONNECTION_LOST"}'),
      ).toBe(1)
      expect(await program.stop()).toContain('Stopped.')
    } finally {
      program.signal('SIGKILL')
      await broker.stop()
    }
  })
})

describe('examples/small/disconnect-reason.js', () => {
  it('says goodbye with a reason, and with its will', async () => {
    const goodbyes: DisconnectPacket[] = []
    const { broker, url, stop } = await startMemoryBroker({
      intercept: (direction, packet) => {
        if (direction === 'in' && packet.type === 'disconnect') goodbyes.push(packet)
        return undefined
      },
    })
    try {
      const program = new Program('small/disconnect-reason.js', [], url)
      await program.prints('Connected as ')
      expect(await program.stop()).toContain('Said goodbye.')
      await eventually(() => broker.accepted.length > 0, 'the will')
      expect(broker.accepted).toMatchObject([{ topic: 'goodbye/status', will: true, qos: 1 }])
      const properties = { reasonString: 'maintenance', userProperties: [['back', 'in an hour']] }
      expect(goodbyes).toMatchObject([{ reasonCode: 0x04, properties }])
      expect(broker.violations).toEqual([])
    } finally {
      await stop()
    }
  })

  it('prints the reason of the server, made safe, and ends with what it was', async () => {
    const { broker, url, stop } = await startMemoryBroker({})
    try {
      const program = new Program('small/disconnect-reason.js', [], url)
      await program.prints('Connected as ')
      for (const clientId of broker.clients.keys())
        broker.disconnect(clientId, 0x98, { reasonString: 'by order\nof somebody' })
      const output = await program.ends(1)
      expect(output).toContain(
        'The server says goodbye, 0x98 Administrative action: by order\\u{a}of somebody\n',
      )
      expect(output).toContain('Ended: ERR_SERVER_DISCONNECT')
    } finally {
      await stop()
    }
  })

  withMosquitto(['TCP'], () => {
    it('has mosquitto publish its will', async () => {
      const broker = await startMosquitto()
      const watcher = await connect(broker.urls.TCP ?? '')
      try {
        const status = await watcher.subscribe('goodbye/status', { qos: 1 })
        const program = new Program('small/disconnect-reason.js', [], broker.urls.TCP)
        await program.prints('Connected as ')
        await program.stop()
        expect((await take(status, 'the will')).text()).toBe('gone')
      } finally {
        watcher.destroy()
        await broker.stop()
      }
    })
  })
})
