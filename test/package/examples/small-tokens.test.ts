/** The example of tokens that run out, as a process of its own, with a token server and brokers that take only the newest token. */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import type { AuthenticateError } from 'aedes'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/index.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import { startAedes } from '../../real/brokers.js'
import { eventually } from '../../real/waiting.js'
import { listening } from '../../support/servers.js'
import { requireDist } from '../fixture.js'
import { Program } from './program.js'

/** Seconds; the example renews its tokens one second before. */
const lifetime = 2

/** Gives tokens out as OAuth 2.0 does, and knows which one is good. */
class TokenServer {
  url = ''
  issued = 0
  /** Tokens that a broker was shown. */
  readonly shown: string[] = []
  /** Of those, the ones that were not the newest, or came after their time. */
  readonly stale: string[] = []
  #newest = { token: '', until: 0 }
  readonly #server = createServer(async (request, response) => {
    const form = new URLSearchParams(await text(request))
    if (
      request.method !== 'POST' ||
      form.get('grant_type') !== 'client_credentials' ||
      form.get('client_secret') !== 'the-secret'
    ) {
      response.writeHead(401).end()
      return
    }
    this.issued += 1
    this.#newest = { token: `token-${this.issued}`, until: Date.now() + lifetime * 1000 }
    response.end(
      JSON.stringify({
        access_token: this.#newest.token,
        token_type: 'Bearer',
        expires_in: lifetime,
      }),
    )
  })

  async start(): Promise<void> {
    this.url = `http://127.0.0.1:${await listening(this.#server)}/token`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  accepts(token: string): boolean {
    const good = token === this.#newest.token && Date.now() < this.#newest.until
    this.shown.push(token)
    if (!good) this.stale.push(token)
    return good
  }

  /** What the example is told. */
  get env() {
    return { TOKEN_URL: this.url, CLIENT_SECRET: 'the-secret', REFRESH_BEFORE: '1' }
  }
}

describe('examples/small/token-rotation.js', () => {
  let tokens: TokenServer
  beforeAll(requireDist)
  beforeEach(async () => {
    tokens = new TokenServer()
    await tokens.start()
    return () => tokens.stop()
  })

  async function stopped(program: Program): Promise<string> {
    const output = await program.stop()
    expect(output).toContain('Stopped.')
    return output
  }

  it('connects anew with another token in time, and with another one after a loss', async () => {
    const broker = await startAedes({
      authenticate: (_client, username, password, done) => {
        if (username !== 'token-rotation' || tokens.accepts(String(password))) done(null, true)
        else
          done(
            Object.assign(new Error('not the newest token'), {
              returnCode: 4,
            }) as AuthenticateError,
            false,
          )
      },
    })
    const program = new Program('small/token-rotation.js', [], broker.urls.TCP, tokens.env)
    try {
      await program.prints('Connected with token 1')
      await program.prints('Connection over: credentials expire')
      await program.prints('Connected with token 2')
      expect(tokens.shown.slice(0, 2)).toEqual(['token-1', 'token-2'])
      await broker.kill()
      const before = tokens.shown.length
      await broker.live()
      await eventually(() => tokens.shown.length > before, 'a login after the loss')
      const other = await connect(broker.urls.TCP ?? '')
      await other.publish('rotation/after', 'here again', { qos: 1, retain: true })
      await other.disconnect()
      await program.prints('rotation/after: here again')
      const output = await stopped(program)
      expect(new Set(tokens.shown).size).toBe(tokens.shown.length)
      expect(tokens.stale).toEqual([])
      expect(tokens.shown.filter((token) => output.includes(token))).toEqual([])
    } finally {
      program.signal('SIGKILL')
      await broker.stop()
    }
  })

  it('with enhanced authentication the connection stays, and only the token changes', async () => {
    const exchanges: boolean[] = []
    const bearer = {
      start(
        data: Uint8Array | undefined,
        { reauthentication }: { readonly reauthentication: boolean },
      ) {
        exchanges.push(reauthentication)
        if (!tokens.accepts(new TextDecoder().decode(data))) throw new Error('not the newest token')
        return { reasonCode: 0 }
      },
      continue: () => expect.unreachable('one step was all'),
    }
    const broker = new MemoryBroker({ auth: { BEARER: bearer } })
    let connections = 0
    broker.on('connect', () => void connections++)
    const listener = await listenTcp({}, broker.accept)
    const program = new Program('small/token-rotation.js', [], listener.url, {
      ...tokens.env,
      AUTH_METHOD: 'BEARER',
    })
    try {
      await program.prints('Connected with token 1')
      await program.prints('The connection goes on with the new token')
      broker.publish({ topic: 'rotation/after', payload: 'still here', qos: 1 })
      await program.prints('rotation/after: still here')
      const output = await stopped(program)
      expect(connections).toBe(1)
      expect(output).not.toContain('Connection over')
      expect(tokens.shown.slice(0, 2)).toEqual(['token-1', 'token-2'])
      expect(exchanges.slice(0, 2)).toEqual([false, true])
      expect(tokens.stale).toEqual([])
      expect(broker.violations).toEqual([])
    } finally {
      program.signal('SIGKILL')
      broker.close()
      await listener.close()
    }
  })

  it('ends with an error when the token server says no at once', async () => {
    const program = new Program('small/token-rotation.js', [], 'mqtt://127.0.0.1:1', {
      ...tokens.env,
      CLIENT_SECRET: 'wrong',
    })
    expect(await program.ends(1)).toContain('Not connected: the token server answers 401')
    expect(tokens.issued).toBe(0)
  })
})
