import { createServer as createPlain } from 'node:net'
import {
  createServer,
  type Server,
  type TlsOptions as ServerOptions,
  type TLSSocket,
} from 'node:tls'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { dialTcp, listenTcp } from '../../../src/transport/tcp.js'
import { dialTls } from '../../../src/transport/tls.js'
import type { Dial, SocketOptions, TlsOptions } from '../../../src/transport/transport.js'
import { dialWebSocketNode, listenWebSocket } from '../../../src/transport/websocket-node.js'
import {
  hasOpenssl,
  type Identity,
  issue,
  issueBetween,
  selfSigned,
} from '../../support/certificates.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'
import { transportContract } from './contract.js'
import { dialledPair, failure, never, opened, pattern, Recorder, target } from './rig.js'

const possible = hasOpenssl() || process.env['CI'] !== undefined
if (!possible) console.warn('The TLS tests need openssl, which is not here: they are left out')

// In CI a missing openssl fails in `beforeAll`; elsewhere these tests are not defined at all.
if (possible) tests()
else
  it('the TLS tests are left out without openssl', () => expect(process.env['CI']).toBeUndefined())

function tests(): void {
  let ca: Identity
  let otherCa: Identity
  let local: Identity
  let named: Identity
  let expired: Identity
  let early: Identity
  let stranger: Identity
  let client: Identity
  const servers: { close(): unknown }[] = []
  const sockets: TLSSocket[] = []

  beforeAll(() => {
    ca = selfSigned('Test Authority', 'DNS:authority.test')
    otherCa = selfSigned('Other Authority', 'DNS:other.test')
    local = issue(ca)
    named = issue(ca, { names: 'DNS:broker.test' })
    expired = issue(ca, { days: -1 })
    early = issueBetween(ca, 1, 10)
    stranger = selfSigned('Stranger')
    client = issue(ca, { names: 'DNS:client.test' })
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) await server.close()
  })

  async function serve(
    options: ServerOptions,
    onSocket: (socket: TLSSocket) => void = () => {},
  ): Promise<number> {
    const server: Server = createServer(options, (socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      onSocket(socket)
      socket.pipe(socket)
    })
    servers.push(server)
    return listening(server)
  }

  // Resolves every name to this machine.
  const lookup = ((
    _name: string,
    options: { all?: boolean },
    callback: (error: null, ...rest: unknown[]) => void,
  ) => {
    if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }])
    else callback(null, '127.0.0.1', 4)
  }) as unknown as NonNullable<SocketOptions['lookup']>

  function dial(host: string, port: number, tls: TlsOptions, by: Dial = dialTls, scheme = 'mqtts') {
    return by(target(`${scheme}://${host}:${port}`, { tls, socket: { lookup } }), { signal: never })
  }

  /** Dials, and has ten bytes echoed. */
  async function echo(host: string, port: number, tls: TlsOptions): Promise<void> {
    const a = new Recorder(await dial(host, port, tls)).open()
    a.write(pattern(10))
    await a.until(() => a.length === 10, 'the echo')
    a.close()
    await a.untilClosed()
    expect([a.cause, a.violations]).toEqual([undefined, []])
  }

  transportContract({
    name: 'tls',
    pair: () =>
      dialledPair((accept) => listenTcp({ tls: local }, accept), dialTls, { tls: { ca: ca.cert } }),
  })

  describe('dialTls: who is trusted', () => {
    it('connects to a certificate of the given authority, by name and by address', async () => {
      const port = await serve(local)
      await echo('localhost', port, { ca: ca.cert })
      await echo('127.0.0.1', port, { ca: Buffer.from(ca.cert) })
      await echo('localhost', port, { ca: [otherCa.cert, new Uint8Array(Buffer.from(ca.cert))] })
      await echo('localhost', port, { ca: `${otherCa.cert}\n${ca.cert}` })
      await echo('broker.test', await serve(named), { ca: ca.cert })
    })

    const identities = () => ({ local, named, expired, early, stranger })
    const unknown = /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT/
    const otherName = /ERR_TLS_CERT_ALTNAME_INVALID/

    type Row = [
      string,
      keyof ReturnType<typeof identities>,
      () => string | undefined,
      string,
      RegExp,
    ]
    it.each<Row>([
      ['another authority', 'local', () => otherCa.cert, 'localhost', unknown],
      ['the authorities of the platform only', 'local', () => undefined, 'localhost', unknown],
      ['another name', 'named', () => ca.cert, 'elsewhere.test', otherName],
      ['an address that it does not have', 'named', () => ca.cert, '127.0.0.1', otherName],
      ['its begin to come', 'early', () => ca.cert, 'localhost', /CERT_NOT_YET_VALID/],
      ['its end in the past', 'expired', () => ca.cert, 'localhost', /CERT_HAS_EXPIRED/],
      ['itself as its signer', 'stranger', () => ca.cert, 'localhost', /DEPTH_ZERO_SELF_SIGNED/],
    ])(
      'fails with the platform’s code for a certificate with %s',
      async (_name, identity, authority, host, code) => {
        const port = await serve(identities()[identity])
        const trusted = authority()
        const tls = trusted === undefined ? {} : { ca: trusted }
        for (const [by, scheme] of [
          [dialTls, 'mqtts'],
          [dialWebSocketNode, 'wss'],
        ] as const)
          expect((await failure(dial(host, port, tls, by, scheme))).code).toMatch(code)
      },
    )

    it('takes a servername for the check, also an address, and refuses a wrong one', async () => {
      await echo('127.0.0.1', await serve(named), { ca: ca.cert, servername: 'broker.test' })
      const port = await serve(local)
      await echo('elsewhere.test', port, { ca: ca.cert, servername: '127.0.0.1' })
      expect(
        (await failure(dial('localhost', port, { ca: ca.cert, servername: 'wrong.test' }))).code,
      ).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    })

    it('the environment cannot turn verification off', async () => {
      const port = await serve(stranger)
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
      try {
        expect((await failure(dial('localhost', port, { ca: ca.cert }))).code).toBe(
          'DEPTH_ZERO_SELF_SIGNED_CERT',
        )
      } finally {
        vi.unstubAllEnvs()
      }
    })

    it('insecure connects to anybody and warns each time, naming the reason', async () => {
      const port = await serve(stranger)
      const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
      await echo('elsewhere.test', port, { insecure: 'bench without certificates' })
      await echo('elsewhere.test', port, { insecure: 'bench without certificates' })
      const warnings = warn.mock.calls.filter(
        ([, options]) => (options as { code?: string } | undefined)?.code === 'MQWIRE_TLS_INSECURE',
      )
      expect(warnings.map(([text]) => text)).toEqual(
        new Array(2).fill(
          'The TLS certificate of elsewhere.test is not verified: bench without certificates',
        ),
      )
    })

    it.each([
      ['', ''],
      ['blank', '  '],
      ['true', true],
    ])('insecure without a reason is refused (%s)', async (_name, insecure) => {
      const error = await failure(dial('localhost', 1, { insecure: insecure as string }))
      expect([error.code, error.option]).toEqual(['ERR_INVALID_OPTION', 'tls.insecure'])
    })
  })

  describe('dialTls: what is given', () => {
    const begin = '-----BEGIN CERTIFICATE-----'
    it.each([
      ['tls.ca', 'text', () => ({ ca: 'not a certificate' })],
      ['tls.ca', 'an empty list', () => ({ ca: [] })],
      ['tls.ca', 'one bad among good', () => ({ ca: [ca.cert, 'x'] })],
      [
        'tls.ca',
        'one broken in a bundle',
        () => ({ ca: `${ca.cert}${begin}\nAAAA\n-----END CERTIFICATE-----\n` }),
      ],
      ['tls.ca', 'a path', () => ({ ca: '/etc/ssl/ca.pem' })],
      ['tls.cert', 'text', () => ({ cert: 'nonsense', key: client.key })],
      ['tls.key', 'text', () => ({ cert: client.cert, key: 'nonsense' })],
      ['tls.key', 'another key', () => ({ cert: client.cert, key: local.key })],
      [
        'tls.key',
        'a locked key without its password',
        () => ({ cert: client.cert, key: issue(ca, { passphrase: 'abcd' }).key }),
      ],
    ] as const)('bad %s (%s) fails before any connection', async (option, _name, tls) => {
      let connections = 0
      const server = createPlain((socket) => {
        connections++
        socket.destroy()
      })
      servers.push(server)
      const port = await listening(server)
      for (const [by, scheme] of [
        [dialTls, 'mqtts'],
        [dialWebSocketNode, 'wss'],
      ] as const) {
        const error = await failure(dial('127.0.0.1', port, tls(), by, scheme))
        expect([error.code, error.option]).toEqual(['ERR_INVALID_OPTION', option])
        expect(error.message).not.toContain('PRIVATE KEY')
      }
      await pause(30)
      expect(connections).toBe(0)
    })

    it('shows its certificate, and the next attempt shows the next one', async () => {
      const seen: string[] = []
      const port = await serve({ ...local, ca: ca.cert, requestCert: true }, (socket) =>
        seen.push(String(socket.getPeerCertificate().subjectaltname)),
      )
      await echo('localhost', port, { ca: ca.cert, ...client })
      const passphrase = 'abcd'
      await echo('localhost', port, {
        ca: ca.cert,
        ...issue(ca, { names: 'DNS:second.test', passphrase }),
        passphrase,
      })
      expect(seen).toEqual(['DNS:client.test', 'DNS:second.test'])
    })

    it.each(['TLSv1.2', 'TLSv1.3'] as const)(
      'ends with the platform’s error without the certificate that a server demands (%s)',
      async (maxVersion) => {
        const port = await serve({ ...local, ca: ca.cert, requestCert: true, maxVersion })
        let error: unknown
        try {
          // TLS 1.3 servers refuse after the client is done.
          const a = new Recorder(await dial('localhost', port, { ca: ca.cert })).open()
          await a.untilClosed()
          error = a.cause
        } catch (reason) {
          error = reason
        }
        expect((error as { code?: unknown }).code).toMatch(/ERR_SSL_|ECONNRESET/)
      },
    )

    it('sends SNI for names and none for addresses', async () => {
      const names: unknown[] = []
      const port = await serve(issue(ca, { names: 'DNS:broker.test,IP:127.0.0.1' }), (socket) =>
        names.push(socket.servername),
      )
      await echo('broker.test', port, { ca: ca.cert })
      await echo('127.0.0.1', port, { ca: ca.cert })
      await echo('127.0.0.1', port, { ca: ca.cert, servername: 'broker.test' })
      expect(names).toEqual(['broker.test', false, 'broker.test'])
    })

    it('offers the ALPN list, preferred first, and none by default', async () => {
      const offers: string[][] = []
      const picked: unknown[] = []
      const ALPNCallback = ({ protocols }: { protocols: string[] }) => {
        offers.push(protocols)
        return protocols[0]
      }
      const port = await serve({ ...local, ALPNCallback }, (socket) =>
        picked.push(socket.alpnProtocol),
      )
      await echo('localhost', port, { ca: ca.cert, alpn: ['x-amzn-mqtt-ca', 'mqtt'] })
      await echo('localhost', port, { ca: ca.cert })
      expect([offers, picked]).toEqual([[['x-amzn-mqtt-ca', 'mqtt']], ['x-amzn-mqtt-ca', false]])
    })
  })

  describe('dialTls: what is spoken', () => {
    it('refuses a server that has only TLS 1.1, and by minVersion one that has only 1.2', async () => {
      const old = await serve({
        ...local,
        minVersion: 'TLSv1.1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      })
      expect((await failure(dial('localhost', old, { ca: ca.cert }))).code).toMatch(
        /ERR_SSL_|ECONNRESET/,
      )
      const port = await serve({ ...local, maxVersion: 'TLSv1.2' }, (socket) =>
        expect(socket.getProtocol()).toBe('TLSv1.2'),
      )
      await echo('localhost', port, { ca: ca.cert })
      expect(
        (await failure(dial('localhost', port, { ca: ca.cert, minVersion: 'TLSv1.3' }))).code,
      ).toMatch(/ERR_SSL_|ECONNRESET/)
    })

    it('fails at a plain port that answers with something else, and goes on with nothing', async () => {
      const seen: number[] = []
      const server = createPlain((socket) => {
        socket.on('error', () => {})
        socket.on('data', (data) => {
          seen.push(data[0] as number)
          socket.end(Buffer.from([0x20, 3, 0, 0, 0]))
        })
      })
      servers.push(server)
      const error = await failure(dial('127.0.0.1', await listening(server), { ca: ca.cert }))
      expect(error.code).toMatch(/ERR_SSL_|EPROTO|ECONNRESET/)
      // One TLS handshake record and no second attempt.
      expect(seen).toEqual([0x16])
    })

    it('a plain client at a TLS port is cut off', async () => {
      const port = await serve(local)
      const a = new Recorder(await dial('127.0.0.1', port, {}, dialTcp, 'mqtt')).open()
      a.write(
        Buffer.from([0x10, 15, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 60, 0, 0, 2, 0x61, 0x62]),
      )
      await a.untilClosed()
      expect(a.ends).toBe(1)
    })

    it('rejects with the reason when aborted during the handshake, and leaves no socket', async () => {
      let closed = false
      const server = createPlain((socket) => {
        socket.on('error', () => {})
        socket.on('close', () => {
          closed = true
        })
        socket.resume()
      })
      servers.push(server)
      const port = await listening(server)
      const controller = new AbortController()
      const dialled = dialTls(target(`mqtts://127.0.0.1:${port}`), { signal: controller.signal })
      const reason = new Error('changed my mind')
      const rejected = expect(dialled).rejects.toBe(reason)
      await pause(30)
      controller.abort(reason)
      await rejected
      await pause(30)
      expect(closed).toBe(true)
      await expect(
        dialTls(target(`mqtts://127.0.0.1:${port}`), { signal: AbortSignal.abort(reason) }),
      ).rejects.toBe(reason)
    })
  })

  it.each(['mqtts', 'wss'])(
    'a client over %s: ERR_TLS, one attempt, and not one byte of MQTT reaches the server',
    async (scheme) => {
      const demanding = { ...local, ca: ca.cert, requestCert: true, minVersion: 'TLSv1.3' } as const
      for (const [options, code] of [
        [expired, /CERT_HAS_EXPIRED/],
        [demanding, /SSL|EPROTO/],
      ] as const) {
        const seen: Buffer[] = []
        const port = await serve(options, (socket) => socket.on('data', (data) => seen.push(data)))
        const tried = new Client(
          { url: `${scheme}://localhost:${port}/mqtt`, tls: { ca: ca.cert } },
          { reconnect: false, username: 'u', password: 'secret' },
        )
        await expect(tried.connect()).rejects.toMatchObject({
          ...{ code: 'ERR_TLS', fault: 'remote', cause: { code: expect.stringMatching(code) } },
        })
        await pause(30)
        expect([seen, sockets.length]).toEqual([[], 0])
      }
    },
  )

  it.each([
    ['mqtts', listenTcp, dialTls],
    ['wss', listenWebSocket, dialWebSocketNode],
  ] as const)(
    'a listener with tls serves %s, also without TCP_NODELAY; with ca it demands a certificate of it',
    async (scheme, listen, by) => {
      const listener = await listen({ tls: { ...local, ca: ca.cert } }, (transport) => {
        const far = new Recorder(transport).open()
        far.onEvent = () => far.length === 3 && far.write(far.bytes)
      })
      servers.push(listener)
      expect(new URL(listener.url).protocol).toBe(`${scheme}:`)
      const parts = { tls: { ca: ca.cert, ...client }, socket: { noDelay: false } }
      const a = await opened(by, listener.url, parts)
      a.write(pattern(3))
      await a.until(() => a.length === 3, 'the echo')
    },
  )

  it('listenTcp rejects certificates that cannot be used', async () => {
    expect((await failure(listenTcp({ tls: { cert: 'x', key: 'y' } }, () => {}))).option).toBe(
      'tls.cert',
    )
  })
}
