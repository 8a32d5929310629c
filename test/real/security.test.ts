/** Certificates at a real broker, and secrets that show nowhere. Each way in which a certificate can be wrong is in `test/unit/transport/tls.test.ts`. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  Client,
  type ClientOptions,
  type EndpointOptions,
  type MqttError,
} from '../../src/client/node.js'
import { issue, selfSigned } from '../support/certificates.js'
import {
  type Broker,
  mosquittoSupports,
  startMosquitto,
  type TransportName,
  withMosquitto,
} from './brokers.js'
import { failure, within } from './waiting.js'

const canary = 'pässwörd-1f3a9'

async function connects(endpoint: EndpointOptions, options: ClientOptions = {}): Promise<void> {
  const client = new Client(endpoint, options)
  await within(client.connect(), 'connecting')
  await within(client.publish('a', 'x', { qos: 1 }), 'a publish')
  await within(client.disconnect(), 'disconnecting')
}

/** The error of an attempt that must fail; nothing of the client is left and nothing of it shows a secret. */
async function refused(endpoint: EndpointOptions, options: ClientOptions = {}): Promise<MqttError> {
  const client = new Client(endpoint, options)
  const events: unknown[] = []
  client.on('connecterror', (event) => events.push(event.error.message, event.endpoint))
  const error = await failure(client.connect(), 'connecting')
  expect(client.state).toBe('closed')
  expect(await within(client.closed, 'closed')).toBe(error)
  const shown = JSON.stringify([error, error.message, error.stack, String(error.cause), events])
  expect(shown).not.toContain(canary)
  return error
}

withMosquitto(['TLS'], () => {
  const authority = selfSigned('authority')
  const stranger = selfSigned('stranger')
  const secure = (['TLS', 'Secure WebSocket'] as const).filter(mosquittoSupports)
  let broker: Broker
  beforeAll(async () => {
    broker = await startMosquitto({
      tls: { authority, server: issue(authority), clientCertificate: true },
    })
  })
  afterAll(() => broker.stop())
  const urlOf = (transport: TransportName): string => broker.urls[transport] ?? ''

  it.each(secure)(
    'over %s it demands a certificate of its authority: with one, which may be locked, the client connects by name and by address; none, and one of a stranger, are ERR_TLS',
    async (transport) => {
      const { ca, ...own } = { ca: authority.cert, ...issue(authority, { passphrase: canary }) }
      const tls = { ca: [stranger.cert, ca], ...own, passphrase: canary }
      await connects({ url: urlOf(transport), tls })
      await connects({ url: urlOf(transport).replace('localhost', '127.0.0.1'), tls })
      for (const wrong of [{ ca }, { ca, cert: stranger.cert, key: stranger.key }])
        expect(await refused({ url: urlOf(transport), tls: wrong })).toMatchObject({
          code: 'ERR_TLS',
          fault: 'remote',
        })
    },
  )

  it.each(secure)('over %s a broker that is not trusted gets nothing', async (transport) => {
    const endpoint = { url: urlOf(transport), tls: { ca: stranger.cert } }
    expect(await refused(endpoint, { username: 'x', password: canary })).toMatchObject({
      code: 'ERR_TLS',
      outcome: 'not-sent',
      fault: 'remote',
    })
    expect(broker.log).not.toContain("u'x'")
  })

  it('TLS to a plain port, and plain to a TLS port, fail before the connect deadline', async () => {
    const [plain, encrypted] = [new URL(urlOf('TCP')).port, new URL(urlOf('TLS')).port]
    for (const url of [`mqtts://localhost:${plain}`, `mqtt://localhost:${encrypted}`]) {
      const { code } = await refused({ url }, { connectTimeout: 60_000 })
      expect(['ERR_TLS', 'ERR_CONNECT_FAILED']).toContain(code)
    }
  })
})
