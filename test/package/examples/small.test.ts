/**
 * The small examples of the README, run as they stand: the service, the device, and the page in a real browser.
 */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually, take } from '../../real/waiting.js'
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
    for (const job of ['one', 'two', 'three']) await producer.publish(`jobs/${job}`, job, { qos: 1 })
    await first.prints('jobs/one: begun')
    first.signal('SIGTERM')
    const { code, output } = await first.ending
    expect(output).toContain('jobs/one: done (one)')
    expect(output).not.toContain('jobs/three')
    expect(output).toContain('Stopped.')
    expect(code).toBe(0)

    const second = new Program('node-service.js', [], url)
    await second.prints('jobs/three: done (three)')
    expect(second.output).not.toContain('jobs/one')
    second.signal('SIGINT')
    expect((await second.ending).code).toBe(0)
    const done = `${output}${second.output}`.split('\n').filter((line) => line.includes(': done'))
    expect(done).toEqual(['jobs/one: done (one)', 'jobs/two: done (two)', 'jobs/three: done (three)'])
  }

  it('finishes the job in hand at SIGTERM, and finds the others when it starts again', () => stopInBetween(broker.urls.TCP, client))

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
    program.signal('SIGTERM')
    expect((await program.ending).code).toBe(0)
  })
})

describe('examples/device.js', () => {
  it('is online, publishes temperatures, and goes offline', async () => {
    const status = await client.subscribe('devices/probe/status', { qos: 1 })
    const temperatures = await client.subscribe('devices/probe/temperature', { qos: 1 })
    const program = new Program('device.js', ['probe'], broker.urls.TCP)
    expect((await take(status)).text()).toBe('online')
    expect((await take(temperatures)).json()).toMatchObject({ temperature: expect.any(Number), at: expect.stringMatching(/^\d{4}-/) })
    program.signal('SIGINT')
    expect((await program.ending).code).toBe(0)
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

const browser = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((file) => existsSync(file))

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
      const shown = (id: string, text: string) => eventually(async () => (await page.locator(id).textContent())?.includes(text), `${text} in ${id}`)

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
