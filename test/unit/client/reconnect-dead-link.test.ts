import { afterEach, describe, expect, it, vi } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { runtime } from '../../../src/client/platform/runtime.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { dialWebSocket } from '../../../src/transport/websocket.js'
import { agreeable } from './harness.js'
import { Rig, welcoming } from './rig.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'

const durable = { clientId: 'c', cleanStart: false, keepAlive: 30, pingTimeout: 10_000 }

describe('a server that says nothing any more', () => {
  it('PINGRESP never comes: keep-alive timeout, reconnect, session resumed', async () => {
    const rig = await new Rig(durable).up()
    rig.behave = () => welcoming({}, true)
    rig.peer.answer = () => undefined
    const publishing = rig.client.publish('t', 'x', { qos: 1 })
    await rig.settle()
    await rig.advance(39_999)
    expect(rig.client.state).toBe('connected')
    await rig.advance(1)
    expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT', fault: 'remote' } }])
    expect(rig.peers[0]?.all('disconnect')).toEqual([])
    expect(rig.peers[0]?.ended).toBeDefined()
    await rig.advance(1000)
    expect(rig.seen('connect').map(({ sessionPresent }) => sessionPresent)).toEqual([false, true])
    expect((await publishing).reasonCode).toBe(0)
    expect(rig.peers[1]?.all('publish')).toMatchObject([{ dup: true }])
    expect(rig.seen('sessionlost')).toEqual([])
    await rig.finish()
  })

  it('the event comes within pingTimeout and 100 ms of the unanswered PINGREQ', async () => {
    const rig = await new Rig({ ...durable, pingTimeout: 3000 }).up()
    rig.peer.answer = () => undefined
    await rig.advance(30_000)
    expect(rig.peer.all('pingreq')).toHaveLength(1)
    await rig.advance(3100)
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.finish()
  })

  it('a server that takes us in and never answers a ping: delays grow while links die young', async () => {
    const rig = await new Rig(
      { ...durable, keepAlive: 5, pingTimeout: 1000 },
      { behave: () => (packet) => (packet.type === 'connect' ? agreeable(packet) : undefined) },
    ).up()
    await rig.advance(80_000)
    expect(rig.delays.slice(0, 5)).toEqual([1000, 2000, 4000, 8000, 16_000])
    await rig.finish()
  })

  it('keep-alive starts anew with each connection: none of the old one’s deadlines counts', async () => {
    const rig = await new Rig(durable).up()
    await rig.advance(29_000)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.client.state).toBe('connected')
    await rig.advance(29_000)
    expect(rig.peers[1]?.all('pingreq')).toHaveLength(0)
    await rig.advance(1000)
    expect(rig.peers[1]?.all('pingreq')).toHaveLength(1)
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })

  it('a packet that never ends: given up after a minute, and the link is made anew', async () => {
    const rig = await new Rig({ ...durable, keepAlive: 20 }).up()
    rig.behave = () => welcoming({}, true)
    rig.peer.sendBytes('30 7f 00 01 61')
    await rig.settle()
    for (let second = 0; second < 59; second++) {
      await rig.advance(1000)
      rig.peer.sendBytes([0])
    }
    expect(rig.client.state).toBe('connected')
    // Pings go on meanwhile.
    expect(rig.peer.all('pingreq').length).toBeGreaterThanOrEqual(2)
    await rig.advance(2000)
    expect(rig.seen('disconnect')).toHaveLength(1)
    await rig.advance(1000)
    expect(rig.dials).toHaveLength(2)
    await rig.finish()
  })

  it('connectTimeout covers dial and CONNACK together, and begins when credentials() has answered', async () => {
    const rig: Rig = new Rig(
      {
        firstConnect: 'wait',
        connectTimeout: 1000,
        credentials: async () => {
          await new Promise<void>((resolve) => rig.clock.setTimer(resolve, 600))
          return {}
        },
      },
      { behave: () => () => undefined },
    )
    rig.client.connect().catch(() => undefined)
    await rig.advance(600 + 999)
    expect(rig.dials).toHaveLength(1)
    expect(rig.seen('connecterror')).toEqual([])
    await rig.advance(1)
    expect(rig.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_TIMEOUT' } }])
    await rig.finish()
  })
})

describe('a server that reads nothing any more', () => {
  it('PINGREQ cannot leave: the link is torn down, and made anew', async () => {
    const clock = new VirtualClock()
    const transports: StalledTransport[] = []
    const transport = (): StalledTransport => {
      const made = new StalledTransport(200)
      transports.push(made)
      return made
    }
    const client = new BaseClient(virtualPlatform(clock), { url: 'x://a', transport }, { ...durable, reconnect: { backoff: () => 1000 } })
    const causes: (string | undefined)[] = []
    client.on('disconnect', ({ cause }) => causes.push(cause?.code))
    const connecting = client.connect()
    await clock.settle()
    transports[0]?.feed(plainConnack)
    await clock.settle()
    await connecting
    client.publish('t', new Uint8Array(300)).catch(() => undefined)
    // Bytes come in, so that the server seems to be alive; none leaves.
    for (let second = 0; second < 60 && causes.length === 0; second++) {
      await clock.advance(1000)
      transports[0]?.feed('30 04 00 01 61 00')
    }
    await clock.advance(2000)
    expect(causes).toEqual(['ERR_KEEPALIVE_TIMEOUT'])
    expect(transports[0]?.destroyed).toBeDefined()
    expect(transports).toHaveLength(2)
    client.destroy()
    await clock.advance(1000)
    expect(clock.pending).toBe(0)
  })
})

/** The platform's WebSocket as some runtimes have it: an error event, and no close event after it. */
class CarelessSocket {
  static readonly made: CarelessSocket[] = []
  readonly protocol = 'mqtt'
  binaryType = ''
  bufferedAmount = 0
  closed = false
  onopen: (() => void) | undefined
  onmessage: ((event: { data: ArrayBuffer }) => void) | undefined
  onerror: ((event: object) => void) | undefined
  onclose: (() => void) | undefined

  constructor() {
    CarelessSocket.made.push(this)
    setTimeout(() => this.onopen?.())
  }

  send(): void {
    if (this.closed) throw new Error('closed')
  }

  close(): void {
    this.closed = true
  }
}

describe('a WebSocket that emits error without close', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
    CarelessSocket.made.length = 0
  })

  it('one disconnect, and a redial', async () => {
    vi.stubGlobal('WebSocket', CarelessSocket)
    const platform = { ...virtualPlatform(new VirtualClock()), ...runtime, dialler: () => dialWebSocket }
    const client = new BaseClient(platform, 'ws://host', { reconnect: { backoff: () => 1 } })
    const events: string[] = []
    for (const type of ['connect', 'disconnect', 'connecterror', 'reconnecting'] as const) client.on(type, () => events.push(type))
    const connack = Uint8Array.of(0x20, 3, 0, 0, 0).buffer
    const connecting = client.connect()
    await vi.waitFor(() => expect(CarelessSocket.made[0]?.onmessage).toBeDefined())
    await new Promise((resolve) => setTimeout(resolve, 5))
    CarelessSocket.made[0]?.onmessage?.({ data: connack })
    await connecting
    CarelessSocket.made[0]?.onerror?.({ error: new Error('network changed') })
    await vi.waitFor(() => expect(CarelessSocket.made).toHaveLength(2))
    await new Promise((resolve) => setTimeout(resolve, 5))
    CarelessSocket.made[1]?.onmessage?.({ data: connack })
    await vi.waitFor(() => expect(client.state).toBe('connected'))
    // A close event that comes after all changes nothing.
    CarelessSocket.made[0]?.onerror?.({ error: new Error('again') })
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(events).toEqual(['connect', 'disconnect', 'reconnecting', 'connect'])
    client.destroy()
    expect(CarelessSocket.made[1]?.closed).toBe(true)
  })
})
