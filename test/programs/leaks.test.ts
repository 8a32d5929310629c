/** What a thousand lost connections leave behind, and what keeps a process alive after `disconnect({ timeout: 0 })`: nothing (pain 21, pain 23). */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireDist } from '../package/fixture.js'
import { RestartableAedes } from './aedes.js'
import { Program } from './program.js'

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
/** `npm run pains` has the million. */
const publishes = long ? 1_000_000 : 10_000
const title = `pain 21: 1,000 reconnects and ${publishes.toLocaleString('en')} publishes leave heap, listeners, timers and handles where they were`

describe.each(['tcp', 'websocket'])('%s', (transport) => {
  it(
    `${title}, and the process ends`,
    async () => {
      const program = new Program('reconnects.js', { RECONNECTS: '1000', PUBLISHES: String(publishes), TRANSPORT: transport }, flags, long ? 20 : 1)
      const { code, last, errors } = await program.ends(long ? 1_200_000 : 50_000)
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      const { before, after, counts, faults } = last as { readonly [name: string]: unknown; readonly before: Rest; readonly after: Rest }
      expect(faults).toEqual([])
      expect(counts).toEqual({ connects: 1200, acknowledged: 1200, received: 1200, published: publishes + 10_000, disconnects: 1200 })
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
  let broker: RestartableAedes
  let urls: Readonly<Record<string, string>>

  beforeAll(async () => {
    broker = await RestartableAedes.start()
    const gone = await RestartableAedes.start()
    await gone.kill()
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const port = (silent.address() as AddressInfo).port
    urls = { MQTT_URL: broker.url, SILENT_URL: `mqtt://127.0.0.1:${port}`, CLOSED_URL: gone.url }
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    silent.close()
    await broker.kill()
  })

  it.each([
    ['idle', 'idle'],
    ['connected', 'connected'],
    ['handshake', 'connecting'],
    ['credentials', 'connecting'],
    ['waiting', 'connecting'],
    ['reconnecting', 'reconnecting'],
  ])('pain 23: ends by itself after disconnect({ timeout: 0 }) with the client %s, and every promise has settled', async (at, state) => {
    const program = new Program('exit.js', { ...urls, STATE: at })
    const { code, last, errors } = await program.ends()
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(last).toMatchObject({ state, now: 'closed' })
    expect(last?.['milliseconds']).toBeLessThan(250)
  })
})
