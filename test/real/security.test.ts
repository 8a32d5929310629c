/** Certificates and names over real sockets, and secrets that show nowhere. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  Client,
  type ClientOptions,
  type EndpointOptions,
  type MqttError,
} from '../../src/client/node.js'
import type { TlsOptions } from '../../src/transport/transport.js'
import { type Identity, issue, selfSigned } from '../support/certificates.js'
import {
  type Broker,
  type MosquittoSettings,
  mosquittoSupports,
  startMosquitto,
  type TransportName,
  withMosquitto,
} from './brokers.js'
import { failure, within } from './waiting.js'

const canary = 'pässwörd-1f3a9'

/** Connects, proves that packets flow, and disconnects. */
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
  const server = issue(authority)
  const secure = (['TLS', 'Secure WebSocket'] as const).filter(mosquittoSupports)

  function running(settings: MosquittoSettings): (transport: TransportName) => string {
    let broker: Broker | undefined
    beforeAll(async () => {
      broker = await startMosquitto(settings)
    })
    afterAll(() => broker?.stop())
    return (transport) => broker?.urls[transport] ?? ''
  }

  describe('a certificate', () => {
    const urlOf = running({ tls: { authority, server } })

    it.each(secure)(
      'of a trusted authority: connects by name and by address, over %s',
      async (transport) => {
        await connects({ url: urlOf(transport), tls: { ca: authority.cert } })
        await connects({
          url: urlOf(transport).replace('localhost', '127.0.0.1'),
          tls: { ca: [stranger.cert, authority.cert], minVersion: 'TLSv1.3' },
        })
      },
    )

    it('without the authority it works only with a stated reason, which is warned of', async () => {
      const warnings: Error[] = []
      const note = (warning: Error): void => void warnings.push(warning)
      process.on('warning', note)
      await connects({ url: urlOf('TLS'), tls: { insecure: 'interop test' } })
      process.off('warning', note)
      expect(warnings.map(({ message }) => message).join()).toContain('interop test')
    })

    it('a CA that is no certificate is ERR_INVALID_OPTION', async () => {
      const error = await refused({ url: urlOf('TLS'), tls: { ca: 'nonsense' } })
      const wanted = { code: 'ERR_INVALID_OPTION', fault: 'local', outcome: 'not-sent' }
      expect(error).toMatchObject(wanted)
    })

    it('TLS to a plain port, and plain to a TLS port, fail before the connect deadline', async () => {
      const [plain, encrypted] = [new URL(urlOf('TCP')).port, new URL(urlOf('TLS')).port]
      for (const url of [`mqtts://localhost:${plain}`, `mqtt://localhost:${encrypted}`]) {
        const { code } = await refused({ url }, { connectTimeout: 60_000 })
        expect(['ERR_TLS', 'ERR_CONNECT_FAILED']).toContain(code)
      }
    })
  })

  it.each<[string, Identity, TlsOptions]>([
    ['a CA that did not sign it', server, { ca: stranger.cert }],
    ['the platform’s authorities only', server, {}],
    ['another name', issue(authority, { names: 'DNS:elsewhere.test' }), { ca: authority.cert }],
    ['an expired certificate', issue(authority, { days: -1 }), { ca: authority.cert }],
  ])('%s: ERR_TLS, and nothing is sent', async (_title, identity, tls) => {
    const broker = await startMosquitto({ tls: { authority, server: identity } })
    try {
      for (const transport of secure) {
        const endpoint = { url: broker.urls[transport] ?? '', tls }
        const error = await refused(endpoint, { username: 'x', password: canary })
        const wanted = { code: 'ERR_TLS', outcome: 'not-sent', fault: 'remote' }
        expect(error, transport).toMatchObject(wanted)
      }
      expect(broker.log).not.toContain('New client connected')
    } finally {
      await broker.stop()
    }
  })

  describe('a server that demands a client certificate', () => {
    const urlOf = running({ tls: { authority, server, clientCertificate: true } })
    const from = ({ cert, key }: Identity): TlsOptions => ({ ca: authority.cert, cert, key })

    it.each(secure)(
      "takes one of the authority; none, and a stranger's, are ERR_TLS, over %s",
      async (transport) => {
        const url = urlOf(transport)
        await connects({ url, tls: from(issue(authority)) })
        for (const tls of [{ ca: authority.cert }, from(stranger)])
          expect(await refused({ url, tls })).toMatchObject({ code: 'ERR_TLS', fault: 'remote' })
      },
    )

    it('a key with a passphrase opens with it', async () => {
      const locked = from(issue(authority, { passphrase: canary }))
      const url = urlOf('TLS')
      await connects({ url, tls: { ...locked, passphrase: canary } })
      const error = await refused({ url, tls: { ...locked, passphrase: 'wrong' } })
      expect(error.code).toBe('ERR_INVALID_OPTION')
    })
  })
})
