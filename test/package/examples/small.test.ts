/** The small examples that are run as they stand: what they print, and what the broker and another client see of them. The page runs in a real browser. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually, take, takeTexts, textsUntil } from '../../real/waiting.js'
import { issue, selfSigned } from '../../support/certificates.js'
import { serveFolder } from '../../support/servers.js'
import { requireDist, root } from '../fixture.js'
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

describe('examples/node-service.js', () => {
  /** Stops the service while it has a job in hand and others wait, and starts it again: each job is done once, by one of the two. */
  async function stopInBetween(url: string | undefined, producer: Client): Promise<void> {
    const first = new Program('node-service.js', [], url)
    await first.prints('Waiting for jobs')
    for (const job of ['one', 'two', 'three'])
      await producer.publish(`jobs/${job}`, job, { qos: 1 })
    await first.prints('jobs/one: begun')
    const output = await first.stop('SIGTERM')
    expect(output).not.toContain('jobs/three')
    expect(output).toContain('Stopped.')

    const second = new Program('node-service.js', [], url)
    await second.prints('jobs/three: done (three)')
    expect(second.output).not.toContain('jobs/one')
    await second.stop()
    const done = `${output}${second.output}`.split('\n').filter((line) => line.includes(': done'))
    expect(done).toEqual([
      'jobs/one: done (one)',
      'jobs/two: done (two)',
      'jobs/three: done (three)',
    ])
  }

  it('finishes the job in hand at SIGTERM, and finds the others when it starts again', () =>
    stopInBetween(broker.urls.TCP, client))

  withMosquitto(['TCP'], () => {
    it('does the same with mosquitto', async () => {
      const other = await startMosquitto()
      const producer = await connect(other.urls.TCP ?? '')
      try {
        await stopInBetween(other.urls.TCP, producer)
      } finally {
        await producer.disconnect({ timeout: 0 })
        await other.stop()
      }
    })
  })

  it('goes on when the connection is lost, and still stops in order', async () => {
    const other = await startAedes()
    afterAll(() => other.stop())
    const program = new Program('node-service.js', [], other.urls.TCP)
    await program.prints('Waiting for jobs')
    await other.kill()
    await program.prints('trying again.')
    await program.stop('SIGTERM')
  })
})

describe('examples/device.js', () => {
  it('is online, publishes temperatures, and goes offline', async () => {
    const status = await client.subscribe('devices/probe/status', { qos: 1 })
    const temperatures = await client.subscribe('devices/probe/temperature', { qos: 1 })
    const program = new Program('device.js', ['probe'], broker.urls.TCP)
    expect((await take(status)).text()).toBe('online')
    expect((await take(temperatures)).json()).toMatchObject({
      temperature: expect.any(Number),
      at: expect.stringMatching(/^\d{4}-/),
    })
    await program.stop()
    expect((await take(status)).text()).toBe('offline')
  })

  it('is declared offline by its will when it vanishes', async () => {
    const status = await client.subscribe('devices/crash/status', { qos: 1 })
    const program = new Program('device.js', ['crash'], broker.urls.TCP)
    expect((await take(status)).text()).toBe('online')
    program.signal('SIGKILL')
    expect((await take(status)).text()).toBe('offline')
  })
})

const browser = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (file) => existsSync(file),
)

describe('examples/browser.html', () => {
  if (browser === undefined) {
    it('the page is not tried: chromium not found', () => expect(process.env['CI']).toBeUndefined())
    return
  }

  it('prints messages as they come, and says why it stopped', async () => {
    // As the comment in the page says.
    const { origin, stop } = await serveFolder(root)
    const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] })
    try {
      const page = await chrome.newPage()
      const open = (query: string) => page.goto(`${origin}/examples/browser.html?${query}`)
      const shown = (id: string, text: string) =>
        eventually(
          async () => (await page.locator(id).textContent())?.includes(text),
          `${text} in ${id}`,
        )

      await open(`url=${broker.urls.WebSocket}&topic=page/%23`)
      await shown('#status', 'Reading page/#')
      await client.publish('page/1', '<b>hello</b>', { qos: 1 })
      await client.publish('page/2', 'again', { qos: 1 })
      await shown('#messages', 'page/1: <b>hello</b>\npage/2: again')

      await open('url=ws://127.0.0.1:1')
      await shown('#status', 'Stopped: ')
    } finally {
      await chrome.close()
      stop()
    }
  })
})

/** The lines of an example that ran to its end. */
async function linesOf(name: string, url: string | undefined, more = {}): Promise<string[]> {
  return (await new Program(`small/${name}.js`, [], url, more).ends()).trimEnd().split('\n')
}

describe('examples/small/basic.js', () => {
  it('connects, reads what it publishes, and disconnects', async () => {
    const seen = await client.subscribe('basic/+', { qos: 1 })
    const [first, ...others] = await linesOf('basic', broker.urls.TCP)
    expect(first).toMatch(/^Connected as .+\.$/)
    expect(others).toEqual([
      'basic/red: red',
      'basic/green: green',
      'basic/blue: blue',
      'Disconnected.',
    ])
    expect(await takeTexts(seen, 3)).toEqual([
      '{"colour":"red"}',
      '{"colour":"green"}',
      '{"colour":"blue"}',
    ])
  })
})

describe('examples/small/raw-bytes.js', () => {
  it('sends bytes of two kinds, and reads them as what they were', async () => {
    const seen = await client.subscribe('raw/+', { qos: 1 })
    expect(await linesOf('raw-bytes', broker.urls.TCP)).toEqual([
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
      const lines = await linesOf('websocket', other.urls.WebSocket, { TOKEN: secret })
      expect(lines).toEqual([
        'Connected over a plain WebSocket.',
        'websocket/greeting: Hello over WebSocket (retained)',
      ])
      expect(handshakes).toMatchObject([
        { authorization: `Bearer ${secret}`, 'sec-websocket-protocol': 'mqtt' },
      ])
      await linesOf('websocket', other.urls.WebSocket, { TOKEN: '' })
      expect(handshakes[1]).not.toHaveProperty('authorization')
    } finally {
      await other.stop()
    }
  })
})

describe('examples/small/request-response.js', () => {
  it('answers each question at the asker, and gives up where no answer comes', async () => {
    const questions = await client.subscribe('calculator/+')
    const lines = await linesOf('request-response', broker.urls.TCP)
    expect(lines[0]).toBe('calculator/sum of 1, 2, 3: 6')
    expect(lines.slice(1, 3).sort()).toEqual([
      'calculator/sum of 0.5, 0.25: 0.75',
      'calculator/sum of 20, 22: 42',
    ])
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
    const env = Object.fromEntries(
      Object.keys(files).map((name) => [name, path.join(folder, `${name}.pem`)]),
    )
    let secure: Broker

    beforeAll(async () => {
      for (const [name, content] of Object.entries(files)) writeFileSync(env[name] ?? '', content)
      secure = await startMosquitto({
        tls: { authority, server: issue(authority), clientCertificate: true },
      })
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
      const output = 'Connected; the certificate of the broker is good.\nPublished.\n'
      expect(await run(env)).toEqual({ code: 0, output, arrived: ['nobody read this on the way'] })
    })

    it('sends nothing to a broker with an unknown certificate, nor to one that does not know it', async () => {
      const { CA_FILE: ca = '', ...identity } = env
      for (const given of [identity, { CA_FILE: ca }]) {
        const { output, ...ending } = await run(given)
        expect(output).toContain('Not connected (ERR_TLS): ')
        expect(ending).toEqual({ code: 1, arrived: [] })
      }
    })
  })
})
