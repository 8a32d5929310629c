/**
 * The small examples that do one thing and end, run as they stand: what they print, and what the broker and another client see of them.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { take, takeTexts, textsUntil } from '../../real/waiting.js'
import { issue, selfSigned } from '../../support/certificates.js'
import { requireDist } from '../fixture.js'
import { Program } from './program.js'

let broker: Broker
let client: Client
beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  client = await connect(broker.urls.TCP ?? '')
  return async () => {
    await client.disconnect({ timeout: 0 })
    await broker.stop()
  }
})

/** The lines of an example that ran to its end. */
async function linesOf(program: Program): Promise<string[]> {
  const { code, output } = await program.ending
  expect(code, output).toBe(0)
  return output.trimEnd().split('\n')
}

describe('examples/small/basic.js', () => {
  it('connects, reads what it publishes, and disconnects', async () => {
    const seen = await client.subscribe('basic/+', { qos: 1 })
    const [first, ...others] = await linesOf(new Program('small/basic.js', [], broker.urls.TCP))
    expect(first).toMatch(/^Connected as .+\.$/)
    expect(others).toEqual(['basic/red: red', 'basic/green: green', 'basic/blue: blue', 'Disconnected.'])
    expect(await takeTexts(seen, 3)).toEqual(['{"colour":"red"}', '{"colour":"green"}', '{"colour":"blue"}'])
  })
})

describe('examples/small/raw-bytes.js', () => {
  it('sends bytes of two kinds, and reads them as what they were', async () => {
    const seen = await client.subscribe('raw/+', { qos: 1 })
    expect(await linesOf(new Program('small/raw-bytes.js', [], broker.urls.TCP))).toEqual([
      'raw/record: 7 bytes, 000741ac000028',
      '{ sensor: 7, celsius: 21.5, humidity: 40 }',
      'raw/samples: 0.25, -0.5, 1',
    ])
    const record = await take(seen)
    expect([...record.payload]).toEqual([0, 7, 0x41, 0xac, 0, 0, 40])
    expect(record.properties.contentType).toBe('application/octet-stream')
    expect([...new Float32Array((await take(seen)).payload.buffer)]).toEqual([0.25, -0.5, 1])
  })
})

describe('examples/small/websocket.js', () => {
  it('speaks MQTT over WebSocket, with the header in its handshake', async () => {
    const handshakes: IncomingHttpHeaders[] = []
    const other = await startAedes({
      authenticate: ({ req }, _username, _password, done) => {
        if (req !== undefined) handshakes.push(req.headers)
        done(null, true)
      },
    })
    try {
      const secret = 'a-token'
      const lines = await linesOf(new Program('small/websocket.js', [], other.urls.WebSocket, { TOKEN: secret }))
      expect(lines).toEqual(['Connected over a plain WebSocket.', 'websocket/greeting: Hello over WebSocket (retained)'])
      expect(handshakes).toMatchObject([{ authorization: `Bearer ${secret}`, 'sec-websocket-protocol': 'mqtt' }])
      await linesOf(new Program('small/websocket.js', [], other.urls.WebSocket, { TOKEN: '' }))
      expect(handshakes[1]).not.toHaveProperty('authorization')
    } finally {
      await other.stop()
    }
  })
})

describe('examples/small/request-response.js', () => {
  it('answers each question at the asker, and gives up where nobody answers', async () => {
    const questions = await client.subscribe('calculator/+')
    const lines = await linesOf(new Program('small/request-response.js', [], broker.urls.TCP))
    expect(lines[0]).toBe('calculator/sum of 1, 2, 3: 6')
    expect(lines.slice(1, 3).sort()).toEqual(['calculator/sum of 0.5, 0.25: 0.75', 'calculator/sum of 20, 22: 42'])
    expect(lines.slice(3)).toEqual(['calculator/product of 2, 3: ERR_TIMEOUT'])
    const correlations = new Set<string>()
    for (const payload of ['[1,2,3]', '[20,22]', '[0.5,0.25]', '[2,3]']) {
      const question = await take(questions)
      expect(question.text()).toBe(payload)
      expect(question.properties.responseTopic).toMatch(/^mqwire\//)
      correlations.add(Buffer.from(question.properties.correlationData ?? []).toString('hex'))
    }
    expect(correlations.size).toBe(4)
  })
})

withMosquitto(['TLS'], () => {
  describe('examples/small/tls.js', () => {
    const authority = selfSigned('authority')
    const own = issue(authority)
    const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
    const files = { CA_FILE: authority.cert, CERT_FILE: own.cert, KEY_FILE: own.key }
    const env = Object.fromEntries(Object.keys(files).map((name) => [name, path.join(folder, `${name}.pem`)]))
    let secure: Broker

    beforeAll(async () => {
      for (const [name, content] of Object.entries(files)) writeFileSync(env[name] ?? '', content)
      secure = await startMosquitto({ tls: { authority, server: issue(authority), clientCertificate: true } })
    })
    afterAll(async () => {
      await secure.stop()
      rmSync(folder, { recursive: true })
    })

    /** Runs it, and gives what arrived at a client without TLS. */
    async function run(given: Readonly<Record<string, string>>) {
      const watcher = await connect(secure.urls.TCP ?? '')
      try {
        const hellos = await watcher.subscribe('tls/hello', { qos: 1 })
        const ending = await new Program('small/tls.js', [], secure.urls.TLS, given).ending
        await watcher.publish('tls/hello', 'end', { qos: 1 })
        return { ...ending, arrived: await textsUntil(hellos, 'end') }
      } finally {
        watcher.destroy()
      }
    }

    it('publishes with certificates that both sides trust', async () => {
      const { code, output, arrived } = await run(env)
      expect(output).toBe('Connected; the certificate of the broker is good.\nPublished.\n')
      expect(arrived).toEqual(['nobody read this on the way'])
      expect(code).toBe(0)
    })

    it('sends nothing to a broker that nobody vouches for, nor to one that does not know it', async () => {
      const { CA_FILE: ca = '', ...identity } = env
      for (const given of [identity, { CA_FILE: ca }]) {
        const { code, output, arrived } = await run(given)
        expect(output).toContain('Not connected (ERR_TLS): ')
        expect(arrived).toEqual([])
        expect(code).toBe(1)
      }
    })
  })
})
