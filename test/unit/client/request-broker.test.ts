/** Requester and responder, two clients, through the in-memory broker under virtual time: whole exchanges, also while the broker goes and comes. */
import { afterEach, describe, expect, it } from 'vitest'
import type { ClientOptions, Responding, RespondOptions } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import type { RequestHost } from '../../../src/client/requesting/ports.js'
import { Requests } from '../../../src/client/requesting/request.js'
import { respond } from '../../../src/client/requesting/respond.js'
import { MqttError } from '../../../src/errors.js'
import { MemoryBroker, type MemoryBrokerOptions } from '../../../src/testing/broker/index.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { QoS } from '../../../src/wire/packets.js'
import { failure } from './harness.js'
import { quiet } from './incoming.js'
import { viewOf } from './request-double.js'

const brokers: MemoryBroker[] = []

class Scene {
  readonly clock = new VirtualClock()
  readonly broker: MemoryBroker

  constructor(options: MemoryBrokerOptions = {}) {
    this.broker = new MemoryBroker({ clock: this.clock, ...options })
    brokers.push(this.broker)
  }

  async client(clientId: string, options: ClientOptions = {}): Promise<RequestHost> {
    const endpoint = { url: 'memory://broker', transport: this.broker.dial }
    const client = new BaseClient(virtualPlatform(this.clock), endpoint, {
      clientId,
      keepAlive: false,
      reconnect: { backoff: () => 100 },
      ...options,
    })
    quiet(client.connect())
    await this.clock.settle()
    return viewOf({ client, clock: this.clock })
  }

  async responder(handler: Responding, options?: RespondOptions): Promise<void> {
    quiet(respond(await this.client('responder'), 'svc/+', handler, options))
    await this.clock.settle()
  }

  async requests(options?: ClientOptions): Promise<Requests> {
    return new Requests(await this.client('requester', options))
  }
}

afterEach(() => {
  for (const broker of brokers.splice(0)) expect(broker.violations).toEqual([])
})

describe('request and respond through a broker', () => {
  it.each([0, 1, 2] as QoS[])('a hundred at a time, each with its own answer, at QoS %i', async (qos) => {
    const scene = new Scene()
    await scene.responder((message) => `${message.topic} ${message.text()}`, { qos })
    const requests = await scene.requests()
    const replies = Array.from({ length: 100 }, (_, index) => quiet(requests.request(`svc/${index}`, String(index), { qos })))
    await scene.clock.advance(1000)
    expect((await Promise.all(replies)).map((message) => message.text())).toEqual(replies.map((_, index) => `svc/${index} ${index}`))
    expect(requests.ignored).toBe(0)
  })

  it('a handler that fails: its caller gets ERR_REMOTE at once, with what the handler chose to tell', async () => {
    const scene = new Scene()
    const errors = [new Error('secret'), new MqttError('ERR_REMOTE', 'no such \u0007item', { reasonName: 'NOT_FOUND' })]
    await scene.responder(() => {
      throw errors.shift()
    })
    const requests = await scene.requests()
    const told = [failure(requests.request('svc/a', '')), failure(requests.request('svc/a', ''))]
    await scene.clock.settle()
    const common = { code: 'ERR_REMOTE', outcome: 'unknown', fault: 'remote' }
    expect(await Promise.all(told)).toMatchObject([
      { ...common, message: 'remote: ERR_HANDLER_FAILED', reasonName: 'ERR_HANDLER_FAILED' },
      { ...common, message: 'no such \\u{7}item', reasonName: 'NOT_FOUND' },
    ])
    expect(requests.ignored).toBe(0)
  })

  it('the response information of the broker keeps two tenants apart; a responder that allows one answers only there', async () => {
    const scene = new Scene({ responseInformation: (connect) => `tenant/${connect.clientId}` })
    await scene.responder((message) => message.properties.responseTopic, { allow: 'tenant/requester' })
    const [own, other] = [
      await scene.requests({ requestResponseInformation: true }),
      new Requests(await scene.client('other', { requestResponseInformation: true })),
    ]
    const reply = quiet(own.request('svc/a', ''))
    const refused = failure(other.request('svc/a', '', { timeout: 500 }))
    await scene.clock.advance(500)
    expect((await reply).text()).toMatch(/^tenant\/requester\/[0-9a-f]{20}$/)
    expect(await refused).toMatchObject({ code: 'ERR_TIMEOUT' })
  })

  it('the broker forgets everything while a call waits: both subscriptions come back, the answer arrives', async () => {
    const scene = new Scene()
    const held: (() => void)[] = []
    const answers = { qos: 1 as const, concurrency: 2 }
    await scene.responder(() => new Promise<string>((resolve) => held.push(() => resolve('after all'))), answers)
    const requests = await scene.requests()
    const reply = quiet(requests.request('svc/a', '', { qos: 1 }))
    await scene.clock.settle()
    expect(held).toHaveLength(1)
    scene.broker.restart({ keepSessions: false })
    await scene.clock.advance(200)
    held[0]?.()
    await scene.clock.advance(200)
    expect((await reply).text()).toBe('after all')
    const again = quiet(requests.request('svc/b', '', { qos: 1 }))
    await scene.clock.settle()
    held[1]?.()
    await scene.clock.settle()
    expect((await again).text()).toBe('after all')
  })

  it('a response filter that the broker does not allow', async () => {
    const scene = new Scene({ authorizeSubscribe: (_client, { filter }) => !filter.startsWith('mqwire/') })
    const reply = failure((await scene.requests()).request('svc/a', ''))
    await scene.clock.settle()
    expect(await reply).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87, outcome: 'not-sent' })
    expect(scene.broker.accepted).toEqual([])
  })
})
