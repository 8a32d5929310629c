/** Who may connect to whom: passwords, certificates, names. */
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
  startAedes,
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
  expect(shown).not.toContain(encodeURIComponent(canary))
  return error
}

function running(start: () => Promise<Broker>): (transport: TransportName) => string {
  let broker: Broker | undefined
  beforeAll(async () => {
    broker = await start()
  })
  afterAll(() => broker?.stop())
  return (transport) => broker?.urls[transport] ?? ''
}

/** The login tests; `urlOf` gives the broker's URL. */
function logins(urlOf: (transport: TransportName) => string, reasonCode: number): void {
  for (const transport of ['TCP', 'WebSocket'] as const) {
    it(`user name and password as options, in the URL, and from credentials(), over ${transport}`, async () => {
      const url = urlOf(transport)
      await connects({ url }, { username: 'jörg', password: canary })
      await connects({
        url: url.replace('//', `//${encodeURIComponent('jörg')}:${encodeURIComponent(canary)}@`),
      })
      await connects(
        { url },
        {
          credentials: async () => ({
            username: 'jörg',
            password: new TextEncoder().encode(canary),
          }),
        },
      )
    })
    it(`a wrong password is ERR_CONNECT_REFUSED with 0x${reasonCode.toString(16)}, and shows nowhere, over ${transport}`, async () => {
      const url = urlOf(transport)
      const attempts = [
        refused({ url }, { username: 'jörg', password: `${canary}!` }),
        refused({ url }, { username: 'nobody', password: canary }),
        refused({ url }),
        refused({ url: url.replace('//', `//x:${encodeURIComponent(canary)}@`) }),
      ]
      for (const error of await Promise.all(attempts)) {
        expect(error).toMatchObject({
          code: 'ERR_CONNECT_REFUSED',
          outcome: 'refused',
          fault: 'remote',
          reasonCode,
        })
      }
    })
  }
}

describe('aedes with passwords', () => {
  const start = (): Promise<Broker> =>
    startAedes({
      authenticate: (_client, username, password, done) => {
        const known = username === 'jörg' && password?.toString() === canary
        done(known ? null : Object.assign(new Error('no'), { returnCode: 4 }), known)
      },
    })
  logins(running(start), 0x86)
})

function mosquittoTests(): void {
  const authority = selfSigned('authority')
  const stranger = selfSigned('stranger')
  const server = issue(authority)
  const secure = (['TLS', 'Secure WebSocket'] as const).filter(mosquittoSupports)

  describe('mosquitto with a password file', () => {
    logins(
      running(() => startMosquitto({ passwords: { jörg: canary } })),
      0x87,
    )
  })

  describe('mosquitto with a certificate', () => {
    const tls = { authority, server }
    const urlOf = running(() => startMosquitto({ tls }))
    for (const transport of secure) {
      it(`the authority is trusted: connects by name and by address, over ${transport}`, async () => {
        await connects({ url: urlOf(transport), tls: { ca: authority.cert } })
        await connects({
          url: urlOf(transport).replace('localhost', '127.0.0.1'),
          tls: { ca: [stranger.cert, authority.cert], minVersion: 'TLSv1.3' },
        })
      })
    }
    it('a CA that is no certificate is ERR_INVALID_OPTION', async () => {
      const error = await refused({ url: urlOf('TLS'), tls: { ca: 'nonsense' } })
      expect(error).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        fault: 'local',
        outcome: 'not-sent',
      })
    })
    it('TLS to a plain port, and plain to a TLS port, fail before the connect deadline', async () => {
      const { port } = new URL(urlOf('TCP'))
      const options = { connectTimeout: 60_000 }
      const codes = ['ERR_TLS', 'ERR_CONNECT_FAILED']
      expect(codes).toContain((await refused({ url: `mqtts://localhost:${port}` }, options)).code)
      expect(codes).toContain(
        (await refused({ url: `mqtt://localhost:${new URL(urlOf('TLS')).port}` }, options)).code,
      )
    })
    it('without the authority it works only with a stated reason', async () => {
      const warnings: Error[] = []
      const note = (warning: Error): void => void warnings.push(warning)
      process.on('warning', note)
      await connects({ url: urlOf('TLS'), tls: { insecure: 'interop test' } })
      process.off('warning', note)
      expect(warnings.map(({ message }) => message).join()).toContain('interop test')
    })
  })

  const rejected: Record<
    string,
    { readonly settings: MosquittoSettings; readonly tls: TlsOptions }
  > = {
    'a CA that did not sign it': {
      settings: { tls: { authority, server } },
      tls: { ca: stranger.cert },
    },
    'the platform’s authorities only': { settings: { tls: { authority, server } }, tls: {} },
    'another name': {
      settings: { tls: { authority, server: issue(authority, { names: 'DNS:elsewhere.test' }) } },
      tls: { ca: authority.cert },
    },
    'an expired certificate': {
      settings: { tls: { authority, server: issue(authority, { days: -1 }) } },
      tls: { ca: authority.cert },
    },
  }
  for (const [title, { settings, tls }] of Object.entries(rejected)) {
    it(`${title}: ERR_TLS, and nothing is sent`, async () => {
      const broker = await startMosquitto(settings)
      try {
        for (const transport of secure) {
          const error = await refused(
            { url: broker.urls[transport] ?? '', tls },
            { username: 'x', password: canary },
          )
          expect(error, transport).toMatchObject({
            code: 'ERR_TLS',
            outcome: 'not-sent',
            fault: 'remote',
          })
        }
        expect(broker.log).not.toContain('New client connected')
      } finally {
        await broker.stop()
      }
    })
  }

  describe('mosquitto that demands a client certificate', () => {
    const tls = { authority, server, clientCertificate: true }
    const client = issue(authority)
    const urlOf = running(() => startMosquitto({ tls }))
    const withIdentity = ({ cert, key }: Identity): TlsOptions => ({
      ca: authority.cert,
      cert,
      key,
    })
    for (const transport of secure) {
      it(`one of the authority is taken; none, and a stranger's, are ERR_TLS, over ${transport}`, async () => {
        await connects({ url: urlOf(transport), tls: withIdentity(client) })
        for (const offered of [{ ca: authority.cert }, withIdentity(stranger)]) {
          const error = await refused({ url: urlOf(transport), tls: offered })
          expect(error).toMatchObject({ code: 'ERR_TLS', fault: 'remote' })
        }
      })
    }
    it('a key with a passphrase opens with it', async () => {
      const locked = issue(authority, { passphrase: canary })
      await connects({ url: urlOf('TLS'), tls: { ...withIdentity(locked), passphrase: canary } })
      expect(
        (
          await refused({
            url: urlOf('TLS'),
            tls: { ...withIdentity(locked), passphrase: 'wrong' },
          })
        ).code,
      ).toBe('ERR_INVALID_OPTION')
    })
  })
}

withMosquitto(['TLS'], mosquittoTests)
