/** Tokens that run out, and two brokers of which one goes down: each connection has a fresh token, and nothing is lost. */
import { createServer } from 'node:http'
import type { AuthenticateError } from 'aedes'
import { beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { listening } from '../../support/servers.js'
import { type Broker, startAedes } from '../brokers.js'
import { Program, type Report } from './program.js'

const lifetime = 1700

beforeAll(requireDist)

/** Gives tokens out, and knows the current one. */
class Issuer {
  url = ''
  /** Tokens given out, and those of them that a broker accepted. */
  issued = 0
  readonly used: string[] = []
  /** Logins with another than the current token, or after its time. */
  readonly refused: string[] = []
  #current = { token: '', expiresAt: 0 }
  readonly #server = createServer((_request, response) => {
    this.issued += 1
    this.#current = { token: `token-${this.issued}`, expiresAt: Date.now() + lifetime }
    response.end(JSON.stringify(this.#current))
  })

  async start(): Promise<void> {
    this.url = `http://127.0.0.1:${await listening(this.#server)}`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** True for the current token, in its time. */
  accepts(token: string): boolean {
    const accepted = token === this.#current.token && Date.now() < this.#current.expiresAt
    ;(accepted ? this.used : this.refused).push(token)
    return accepted
  }
}

function guarded(issuer: Issuer, arrived: Set<string>): Promise<Broker> {
  return startAedes({
    authenticate: (_client, _username, password, done) => {
      if (issuer.accepts(String(password))) done(null, true)
      else
        done(
          Object.assign(new Error('not the current token'), { returnCode: 4 }) as AuthenticateError,
          false,
        )
    },
    authorizePublish: (_client, packet, done) => {
      if (packet.topic === 'rotation') arrived.add(packet.payload.toString())
      done(null)
    },
  })
}

it('tokens are renewed before they run out, a broker goes down and comes back, and every publish arrives', async () => {
  const issuer = new Issuer()
  await issuer.start()
  const arrived = new Set<string>()
  const [first, second] = [await guarded(issuer, arrived), await guarded(issuer, arrived)]
  const [one = '', other = ''] = [first.urls.TCP, second.urls.TCP]
  const program = new Program('rotation.js', { BROKERS: `${one} ${other}`, TOKENS: issuer.url })
  const connected = (url: string): ((report: Report) => boolean) => {
    return ({ connected: at }) => String(at).startsWith(url)
  }
  try {
    await program.says((report) => report['connected'] === 'first', 'the first connection')
    // Renewed in place, twice.
    await program.says(connected(one), 'a renewal')
    await program.says(connected(one), 'another renewal', program.reports.length)
    await first.shutDown()
    await program.says(connected(other), 'the other broker')
    await first.live()
    await program.says(
      connected(other),
      'a renewal there: what worked sticks',
      program.reports.length,
    )
    await second.shutDown()
    await program.says(connected(one), 'the first broker again', program.reports.length)
    program.signal('SIGTERM')
    const { code, last, errors } = await program.ends()
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(last).toEqual({ state: 'closed', published: last?.['published'], failed: 0 })
    expect(arrived.size).toBe(last?.['published'])
    expect(issuer.refused).toEqual([])
    // Fresh for every connection, never one for two.
    expect(new Set(issuer.used).size).toBe(issuer.used.length)
    expect(issuer.used.length).toBeGreaterThanOrEqual(6)
  } finally {
    program.signal('SIGKILL')
    await first.stop()
    await second.stop()
    issuer.stop()
  }
})
