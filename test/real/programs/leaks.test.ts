/** What a thousand lost connections leave behind, and what keeps a process alive after `disconnect({ timeout: 0 })`: nothing. */
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { freePort, listening } from '../../support/servers.js'
import { type Broker, startAedes } from '../brokers.js'
import { besideUnsent, Program } from './program.js'

// Without what V8 compiles along the way.
const flags = ['--expose-gc', '--no-opt', '--no-sparkplug', '--no-flush-bytecode']

beforeAll(requireDist)

/** What `reconnects.js` saw at rest. */
interface Rest {
  readonly heap: number
  readonly resources: Readonly<Record<string, number>>
  readonly listeners: Readonly<Record<string, number>>
}

const long = process.env['MQWIRE_LONG'] !== undefined
/** `npm run lab -- endurance` has more: MQWIRE_LONG=1 takes a million. */
const publishes = long ? 1_000_000 : 10_000
const title = `1,000 reconnects and ${publishes.toLocaleString('en')} publishes leave heap, listeners, timers and handles where they were`

describe.each(['tcp', 'websocket'])('%s', (transport) => {
  it(
    `${title}, and the process ends`,
    async () => {
      const program = new Program(
        'reconnects.js',
        { RECONNECTS: '1000', PUBLISHES: String(publishes), TRANSPORT: transport },
        flags,
        long ? 20 : 1,
      )
      const { code, last, errors } = await program.ends(long ? 1_200_000 : 50_000)
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      const { before, after, counts, faults } = last as {
        readonly [name: string]: unknown
        readonly before: Rest
        readonly after: Rest
      }
      expect(faults).toEqual([])
      expect(counts).toEqual({
        connects: 1200,
        acknowledged: 1200,
        received: 1200,
        published: publishes + 10_000,
        disconnects: 1200,
      })
      expect(after.resources).toEqual(before.resources)
      expect(after.listeners).toEqual(before.listeners)
      if (long) console.log(`heap ${before.heap} before, ${after.heap} after`)
      expect(after.heap / before.heap).toBeLessThan(1.02)
    },
    long ? 1_200_000 : 60_000,
  )
})

describe('a process', () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
  })
  let broker: Broker
  let urls: Readonly<Record<string, string>>

  beforeAll(async () => {
    broker = await startAedes()
    const [silentPort, closedPort] = [await listening(silent), await freePort()]
    urls = {
      MQTT_URL: broker.urls.TCP ?? '',
      SILENT_URL: `mqtt://127.0.0.1:${silentPort}`,
      CLOSED_URL: `mqtt://127.0.0.1:${closedPort}`,
    }
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    silent.close()
    await broker.stop()
  })

  it.each([
    ['idle', 'idle'],
    ['connected', 'connected'],
    ['handshake', 'connecting'],
    ['credentials', 'connecting'],
    ['waiting', 'connecting'],
    ['reconnecting', 'reconnecting'],
  ])(
    'ends by itself after disconnect({ timeout: 0 }) with the client %s, and every promise has settled',
    async (at, state) => {
      const program = new Program('exit.js', { ...urls, STATE: at })
      const { code, last, errors } = await program.ends()
      expect({ code, errors: besideUnsent(errors) }).toEqual({ code: 0, errors: '' })
      expect(last).toMatchObject({ state, now: 'closed' })
      expect(last?.['milliseconds']).toBeLessThan(250)
    },
  )
})
