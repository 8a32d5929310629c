/**
 * What a client makes of every kind of TLS that is wrong: a typed error, and not one byte of MQTT that reaches the server.
 *
 * The server records what comes out of its TLS, and what comes in below it; a good case shows that it would have recorded something.
 */
import { createServer as createPlain, type Socket } from 'node:net'
import { createServer, type TlsOptions as ServerOptions } from 'node:tls'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { Client } from '../../../src/client/node.js'
import type { MqttError } from '../../../src/errors.js'
import type { TlsOptions } from '../../../src/transport/transport.js'
import {
  hasOpenssl,
  type Identity,
  issue,
  issueBetween,
  selfSigned,
} from '../../support/certificates.js'
import { pause } from '../../support/pausing.js'
import { listening } from '../../support/servers.js'

const possible = hasOpenssl() || process.env['CI'] !== undefined
if (!possible) console.warn('The TLS matrix needs openssl, which is not here: it is left out')

if (possible) tests()
else
  it('the TLS matrix is left out without openssl', () => expect(process.env['CI']).toBeUndefined())

/** A server, and what reached it. */
interface Recording {
  readonly port: number
  /** What came out of TLS, of all connections. */
  decrypted: Buffer
  /** What came in, as it was on the wire. */
  raw: Buffer
  connections: number
}

function tests(): void {
  let ca: Identity
  let otherCa: Identity
  let good: Identity
  let client: Identity
  let foreign: Identity
  let expired: Identity
  const open: (() => void)[] = []

  beforeAll(() => {
    ca = selfSigned('Matrix Authority', 'DNS:authority.test')
    otherCa = selfSigned('Another Authority', 'DNS:other.test')
    good = issue(ca)
    client = issue(ca, { names: 'DNS:client.test' })
    foreign = issue(otherCa, { names: 'DNS:client.test' })
    expired = issueBetween(ca, -10, -1)
  })

  afterEach(() => {
    for (const close of open.splice(0)) close()
  })

  /** Records; CONNECT is answered, so that a good client gets on. Without `options` it speaks no TLS, and answers with its own kind of bytes. */
  async function record(options: ServerOptions | undefined): Promise<Recording> {
    const recording: Recording = {
      port: 0,
      decrypted: Buffer.alloc(0),
      raw: Buffer.alloc(0),
      connections: 0,
    }
    const sockets = new Set<Socket>()
    const secure =
      options &&
      createServer(options, (socket) => {
        socket.on('error', () => undefined)
        socket.on('data', (bytes) => {
          recording.decrypted = Buffer.concat([recording.decrypted, bytes])
          if (bytes[0] === 0x10) socket.write(Buffer.of(0x20, 3, 0, 0, 0))
        })
      })
    secure?.on('tlsClientError', () => undefined)
    const server = createPlain((socket) => {
      recording.connections += 1
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('data', (bytes: Buffer) => {
        recording.raw = Buffer.concat([recording.raw, bytes])
        if (secure === undefined) {
          socket.on('data', (more: Buffer) => {
            recording.raw = Buffer.concat([recording.raw, more])
          })
          socket.end(Buffer.of(0x20, 3, 0, 0, 0))
          return
        }
        socket.pause()
        socket.unshift(bytes)
        secure.emit('connection', socket)
      })
    })
    const port = await listening(server)
    open.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return Object.assign(recording, { port })
  }

  /** Connects, and gives the error; undefined when it worked. */
  async function attempt(
    scheme: string,
    port: number,
    tls: TlsOptions,
    options: ClientOptions = {},
  ): Promise<MqttError | undefined> {
    const url = `${scheme}://localhost:${port}/${scheme === 'wss' ? 'mqtt' : ''}`
    const tried = new Client(
      { url, tls },
      {
        reconnect: false,
        connectTimeout: 5000,
        username: 'u',
        password: 'tls-matrix-password',
        ...options,
      },
    )
    open.push(() => tried.destroy())
    return tried.connect().then(
      () => undefined,
      (error: MqttError) => error,
    )
  }

  type Case = readonly [
    name: string,
    server: () => ServerOptions | undefined,
    tls: () => TlsOptions,
    cause: RegExp,
  ]

  const demands = (version: Pick<ServerOptions, 'minVersion' | 'maxVersion'>) => ({
    ...{ ...good, ca: ca.cert, requestCert: true, ...version },
  })
  const cases: readonly Case[] = [
    ['an expired certificate', () => expired, () => ({ ca: ca.cert }), /CERT_HAS_EXPIRED/],
    [
      'no client certificate where one is demanded, TLS 1.2',
      () => demands({ maxVersion: 'TLSv1.2' }),
      () => ({ ca: ca.cert }),
      /SSL|EPROTO/,
    ],
    [
      'no client certificate where one is demanded, TLS 1.3',
      () => demands({ minVersion: 'TLSv1.3' }),
      () => ({ ca: ca.cert }),
      /SSL|EPROTO/,
    ],
    [
      'a client certificate of another authority, TLS 1.3',
      () => demands({ minVersion: 'TLSv1.3' }),
      () => ({ ca: ca.cert, ...foreign }),
      /SSL|EPROTO/,
    ],
    ['a server that speaks no TLS', () => undefined, () => ({ ca: ca.cert }), /SSL|EPROTO/],
  ]

  describe.each(['mqtts', 'wss'])('TLS that is wrong, over %s', (scheme) => {
    it.each(cases)(
      '%s: a typed error, and not one byte of MQTT reaches the server',
      async (_name, server, tls, cause) => {
        const recording = await record(server())
        const error = await attempt(scheme, recording.port, tls())
        await pause(30)
        expect(error?.fault).toBe('remote')
        // Servers of this platform hang up on a client whose certificate they do not like, without a word of TLS.
        if (tls().cert !== undefined)
          expect(['ERR_TLS', 'ERR_CONNECT_FAILED']).toContain(error?.code)
        else {
          expect(error?.code).toBe('ERR_TLS')
          expect(String((error?.cause as { code?: unknown } | undefined)?.code)).toMatch(cause)
        }
        expect(recording.decrypted.length).toBe(0)
        expect(recording.raw[0]).toBe(0x16)
        expect(recording.raw.includes('MQTT')).toBe(false)
        expect(recording.raw.includes('tls-matrix-password')).toBe(false)
        expect(recording.connections).toBe(1)
      },
    )

    it('a good certificate lets bytes through, so that the recording says something (control)', async () => {
      const recording = await record({ ...good, ca: ca.cert, requestCert: true })
      const error = await attempt(
        scheme,
        recording.port,
        { ca: ca.cert, ...client },
        { connectTimeout: 500 },
      )
      if (scheme === 'mqtts') expect(error).toBeUndefined()
      expect(
        recording.decrypted.includes(scheme === 'mqtts' ? 'MQTT' : 'Sec-WebSocket-Protocol: mqtt'),
      ).toBe(true)
      expect(recording.raw.includes('MQTT')).toBe(false)
    })
  })
}
