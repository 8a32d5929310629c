/** The small examples run as they stand: what they print, and what the broker and another client see of them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, it } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/node.js'
import { driven, withChromium } from '../../browser/chromium.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually, take, takeTexts } from '../../real/waiting.js'
import { issue, selfSigned } from '../../support/certificates.js'
import { listening, serveFolder } from '../../support/servers.js'
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

it('node-service.js finishes the job in hand at SIGTERM, and finds the others when it starts again', async () => {
  const first = new Program('node-service.js', [], broker.urls.TCP)
  await first.prints('Waiting for jobs')
  for (const job of ['one', 'two', 'three']) await client.publish(`jobs/${job}`, job, { qos: 1 })
  await first.prints('jobs/one: begun')
  const output = await first.stop('SIGTERM')
  expect(output).not.toContain('jobs/three')

  const second = new Program('node-service.js', [], broker.urls.TCP)
  await second.prints('jobs/three: done (three)')
  await second.stop()
  const done = `${output}${second.output}`.split('\n').filter((line) => line.includes(': done'))
  expect(done).toEqual(['jobs/one: done (one)', 'jobs/two: done (two)', 'jobs/three: done (three)'])
})

it('device.js is online, publishes temperatures, and is declared offline by its will when it vanishes', async () => {
  const status = await client.subscribe('devices/probe/status', { qos: 1 })
  const temperatures = await client.subscribe('devices/probe/temperature', { qos: 1 })
  const program = new Program('device.js', ['probe'], broker.urls.TCP)
  expect((await take(status)).text()).toBe('online')
  expect((await take(temperatures)).json()).toMatchObject({ temperature: expect.any(Number) })
  program.signal('SIGKILL')
  expect((await take(status)).text()).toBe('offline')
})

withChromium(() => {
  it('browser.html prints messages as they come, and says why it stopped', async () => {
    // As the comment in the page says.
    const { origin, stop } = await serveFolder(root)
    const chrome = await driven()
    try {
      const page = await chrome.newPage()
      const open = (query: string) => page.goto(`${origin}/examples/browser.html?${query}`)
      const shown = (id: string, part: string) =>
        eventually(async () => (await page.locator(id).textContent())?.includes(part), part)

      await open(`url=${broker.urls.WebSocket}&topic=page/%23`)
      await shown('#status', 'Reading page/#')
      await client.publish('page/1', '<b>hello</b>', { qos: 1 })
      await shown('#messages', 'page/1: <b>hello</b>')

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

it('basic.js connects, reads what it publishes, and disconnects', async () => {
  const seen = await client.subscribe('basic/+', { qos: 1 })
  const [first, ...others] = await linesOf('basic', broker.urls.TCP)
  expect(first).toMatch(/^Connected as .+\.$/)
  expect(others).toEqual([
    'basic/red: red',
    'basic/green: green',
    'basic/blue: blue',
    'Disconnected.',
  ])
  expect(await takeTexts(seen, 1)).toEqual(['{"colour":"red"}'])
})

it('raw-bytes.js sends bytes of two kinds, and reads them as what they were', async () => {
  expect(await linesOf('raw-bytes', broker.urls.TCP)).toEqual([
    'raw/record: 7 bytes, 000741ac000028',
    '{ sensor: 7, celsius: 21.5, humidity: 40 }',
    'raw/samples: 0.25, -0.5, 1',
  ])
})

it('websocket.js speaks MQTT over WebSocket, with the header in its handshake', async () => {
  const handshakes: IncomingHttpHeaders[] = []
  const other = await startAedes({
    authenticate: ({ req }, _username, _password, done) => {
      if (req !== undefined) handshakes.push(req.headers)
      done(null, true)
    },
  })
  try {
    expect(await linesOf('websocket', other.urls.WebSocket, { TOKEN: 'a-token' })).toEqual([
      'Connected over a plain WebSocket.',
      'websocket/greeting: Hello over WebSocket (retained)',
    ])
    expect(handshakes).toMatchObject([
      { authorization: 'Bearer a-token', 'sec-websocket-protocol': 'mqtt' },
    ])
  } finally {
    await other.stop()
  }
})

it('request-response.js answers each question at the asker, and gives up where no answer comes', async () => {
  const lines = await linesOf('request-response', broker.urls.TCP)
  expect(lines[0]).toBe('calculator/sum of 1, 2, 3: 6')
  expect(lines.slice(1, 3).sort()).toEqual([
    'calculator/sum of 0.5, 0.25: 0.75',
    'calculator/sum of 20, 22: 42',
  ])
  expect(lines.slice(3)).toEqual(['calculator/product of 2, 3: ERR_TIMEOUT'])
})

withMosquitto(['TLS'], () => {
  it('tls.js publishes with certificates that both sides trust, and does not connect without them', async () => {
    const authority = selfSigned('authority')
    const own = issue(authority)
    const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
    const files = { CA_FILE: authority.cert, CERT_FILE: own.cert, KEY_FILE: own.key }
    const env: Record<string, string> = {}
    for (const [name, content] of Object.entries(files)) {
      env[name] = path.join(folder, `${name}.pem`)
      writeFileSync(env[name], content)
    }
    const secure = await startMosquitto({
      tls: { authority, server: issue(authority), clientCertificate: true },
    })
    try {
      const run = (given: Readonly<Record<string, string>>) =>
        new Program('small/tls.js', [], secure.urls.TLS, given).ending
      const output = 'Connected; the certificate of the broker is good.\nPublished.\n'
      expect(await run(env)).toEqual({ code: 0, output })
      const { CA_FILE: ca = '', ...identity } = env
      for (const given of [identity, { CA_FILE: ca }])
        expect(await run(given)).toEqual({
          code: 1,
          output: expect.stringContaining('Not connected (ERR_TLS): '),
        })
    } finally {
      await secure.stop()
      rmSync(folder, { recursive: true })
    }
  })
})

/** Publishes one retained message with a client of its own. */
async function publish(url: string | undefined, topic: string, payload: string): Promise<void> {
  const sender = await connect(url ?? '')
  await sender.publish(topic, payload, { qos: 1, retain: true })
  await sender.disconnect()
}

it('lifecycle.js reports a loss and the return, and goes on reading', async () => {
  const mortal = await startAedes()
  try {
    const program = new Program('small/lifecycle.js', [], mortal.urls.TCP)
    await program.prints('[connecting -> connected]')
    await mortal.kill()
    await program.prints('It failed: ')
    await mortal.live()
    await publish(mortal.urls.TCP, 'lifecycle/hello', 'still there?')
    await program.prints('lifecycle/hello: still there?')
    const lines = (await program.stop()).trimEnd().split('\n')
    expect(lines.filter((line) => line.startsWith('['))).toEqual([
      '[idle -> connecting]',
      '[connecting -> connected]',
      '[connected -> reconnecting]',
      '[reconnecting -> connected]',
      '[connected -> disconnecting]',
      '[disconnecting -> closed]',
    ])
  } finally {
    await mortal.stop()
  }
})

it('failover.js counts on at the second broker when the first is gone, and leaves no number out', async () => {
  const arrived: [Set<number>, Set<number>] = [new Set(), new Set()]
  const start = (at: Set<number>) =>
    startAedes({
      authorizePublish: (_client, packet, done) => {
        if (packet.topic === 'failover/count') at.add(Number(packet.payload.toString()))
        done(null)
      },
    })
  const [first, second] = [await start(arrived[0]), await start(arrived[1])]
  try {
    const program = new Program('small/failover.js', [], '', {
      MQTT_URLS: `${first.urls.TCP} ${second.urls.TCP}`,
    })
    await program.prints('Counted 2')
    expect(arrived[1].size).toBe(0)
    await first.kill()
    await program.prints(`Connected to ${second.urls.TCP}`)
    await eventually(() => arrived[1].size >= 2, 'numbers at the second broker')
    const output = await program.stop()
    const counted = [...output.matchAll(/^Counted (\d+)$/gm)].map(([, number]) => Number(number))
    expect(counted).toEqual(counted.map((_, index) => index + 1))
    const everywhere = new Set([...arrived[0], ...arrived[1]])
    expect(counted.filter((number) => !everywhere.has(number))).toEqual([])
  } finally {
    await first.stop()
    await second.stop()
  }
})

it('prometheus.js serves the counters of its client as Prometheus reads them', async () => {
  const program = new Program('small/prometheus.js', [], broker.urls.TCP, {
    PORT: '0',
    TOPIC: 'metrics/#',
  })
  await program.prints('Ctrl-C stops.')
  const [address = ''] = /http:\S+\/metrics/.exec(program.output) ?? []
  const scrape = async (): Promise<string> => {
    const response = await fetch(address)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    return response.text()
  }
  expect(await scrape()).toContain('\nmqwire_connected 1\n')
  await client.publish('metrics/1', '1')
  await eventually(async () => (await scrape()).includes('\nmqwire_received_total 1\n'))
  for (const line of (await scrape()).trimEnd().split('\n'))
    expect(line).toMatch(/^(?:# TYPE \w+ (?:counter|gauge)|\w+(?:\{\w+="[^"\\]*"\})? \d[\d.e+-]*)$/)
  expect(await program.stop()).toContain('Stopped.')
})

it('disconnect-reason.js says goodbye with a reason and its will, and prints the reason of the server, made safe', async () => {
  const goodbyes: unknown[] = []
  const ours = new MemoryBroker({
    intercept: (direction, packet) => {
      if (direction === 'in' && packet.type === 'disconnect') goodbyes.push(packet)
      return undefined
    },
  })
  const { urls } = await ours.serve({ tcp: 0 })
  try {
    const program = new Program('small/disconnect-reason.js', [], urls[0])
    await program.prints('Connected as ')
    expect(await program.stop()).toContain('Said goodbye.')
    await eventually(() => ours.accepted.length > 0, 'the will')
    expect(ours.accepted).toMatchObject([{ topic: 'goodbye/status', will: true, qos: 1 }])
    const properties = { reasonString: 'maintenance', userProperties: [['back', 'in an hour']] }
    expect(goodbyes).toMatchObject([{ reasonCode: 0x04, properties }])

    const other = new Program('small/disconnect-reason.js', [], urls[0])
    await other.prints('Connected as ')
    for (const clientId of ours.clients.keys())
      ours.disconnect(clientId, 0x98, { reasonString: 'by order\nof somebody' })
    const output = await other.ends(1)
    expect(output).toContain('0x98 Administrative action: by order\\u{a}of somebody\n')
    expect(output).toContain('Ended: ERR_SERVER_DISCONNECT')
  } finally {
    await ours.close()
  }
})

it('token-rotation.js renews its token in time: by a new connection, or on the one it has', async () => {
  let issued = 0
  const shown: string[] = []
  const server = createServer(async (request, response) => {
    const form = new URLSearchParams(await text(request))
    if (form.get('client_secret') !== 'the-secret') return void response.writeHead(401).end()
    issued += 1
    response.end(JSON.stringify({ access_token: `token-${issued}`, expires_in: 2 }))
  })
  const accepts = (token: string): boolean => {
    shown.push(token)
    return token === `token-${issued}`
  }
  const ours = new MemoryBroker({
    authenticate: ({ password }) =>
      password === undefined || accepts(new TextDecoder().decode(password as Uint8Array)),
    auth: {
      BEARER: {
        start(data) {
          if (!accepts(new TextDecoder().decode(data))) throw new Error('not the newest token')
          return { reasonCode: 0 }
        },
        continue: () => expect.unreachable('one step was all'),
      },
    },
  })
  const { urls } = await ours.serve({ tcp: 0 })
  const settings = {
    TOKEN_URL: `http://127.0.0.1:${await listening(server)}/token`,
    CLIENT_SECRET: 'the-secret',
    REFRESH_BEFORE: '1',
  }
  const start = (more = {}) =>
    new Program('small/token-rotation.js', [], urls[0], { ...settings, ...more })
  try {
    const anew = start()
    await anew.prints('Connection over: credentials expire')
    await anew.prints('Connected with token 2')
    expect(await anew.stop()).toContain('Stopped.')
    expect(shown.slice(0, 2)).toEqual(['token-1', 'token-2'])

    const kept = start({ AUTH_METHOD: 'BEARER' })
    await kept.prints('The connection goes on with the new token')
    const output = await kept.stop()
    expect(output).not.toContain('Connection over')
    expect(shown.filter((token) => `${anew.output}${output}`.includes(token))).toEqual([])
    expect(ours.violations).toEqual([])

    expect(await start({ CLIENT_SECRET: 'wrong' }).ends(1)).toContain(
      'Not connected: the token server answers 401',
    )
  } finally {
    server.closeAllConnections()
    server.close()
    await ours.close()
  }
})
