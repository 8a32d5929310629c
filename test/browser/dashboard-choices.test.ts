/**
 * What a person chooses on the dashboard, in a real browser with a real broker: another address or filter, a topic to publish to, a number to draw,
 * a connection of before. What was before the choice must not stay in sight.
 */
import { createServer } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { dashboard } from '../package/examples/dashboard.js'
import { requireDist } from '../package/fixture.js'
import { type Broker, startAedes } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
import { listening } from '../support/servers.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { DashboardPage } from './dashboard-page.js'

const { serveDashboard } = await dashboard('serve.js')

withChromium(() => {
  let browser: Browser
  let site: Awaited<ReturnType<typeof serveDashboard>>
  let broker: Broker
  let sender: Client
  let open: DashboardPage
  let url = ''
  beforeAll(async () => {
    await requireDist()
    ;[browser, site, broker] = await Promise.all([driven(), serveDashboard(), startAedes()])
    url = broker.urls.WebSocket ?? ''
    sender = await connect(broker.urls.TCP ?? '')
    return async () => {
      await browser.close()
      await sender.disconnect({ timeout: 0 })
      await Promise.all([site.stop(), broker.stop()])
    }
  })
  afterEach(async () => {
    expect(open.complaints.filter((text) => !text.includes('WebSocket connection to'))).toEqual([])
    await open.close()
  })

  const rows = () => open.column('topic')
  const field = (label: string) => open.at('#connect').getByLabel(label)

  async function start(topic: string, address = url, options = {}): Promise<void> {
    open = await DashboardPage.open(browser, site.address({ url: address, topic }), options)
    if (address === url) await open.shows('#state', 'Connected to')
    if (address === url)
      await eventually(
        async () => (await open.at('#negotiated').textContent())?.includes(': QoS'),
        'a subscription',
      )
  }

  describe('another address', () => {
    it('is what the state is about, also when the one before never answered', async () => {
      const silent = createServer(() => undefined)
      const port = await listening(silent)
      afterAll(() => silent.close())
      await start('#', `ws://127.0.0.1:${port}`)
      await open.shows('#state', `Connecting to ws://127.0.0.1:${port}`)
      expect(await open.page.title()).toBe(`Connecting · 127.0.0.1:${port} – mqwire dashboard`)
      await field('Broker').fill('http://127.0.0.1')
      await open.button('Connect').click()
      await open.shows('#problem', 'ERR_INVALID_BROKER_URL')
      expect(await open.at('#state-text').textContent()).toBe('Not connected')
      await field('Broker').fill(url)
      await open.button('Connect').click()
      await open.shows('#state', `Connected to ${url}`)
      expect(await open.page.title()).toBe(
        `Connected · ${url.slice('ws://'.length)} – mqwire dashboard`,
      )
      expect(await open.at('#problem').isHidden()).toBe(true)
      await open.button('Disconnect').click()
      await eventually(
        async () => (await open.page.title()).startsWith('Disconnected · '),
        'the title',
      )
    })

    it('that is refused is what the state is about, with its address', async () => {
      await start('#')
      await field('Broker').fill('ws://127.0.0.1:1')
      await open.button('Connect').click()
      await open.shows('#state', /(?:Connecting|Reconnecting) to ws:\/\/127\.0\.0\.1:1/)
      await open.shows('#problem', 'ERR_CONNECT')
      await eventually(
        async () => /onnecting · 127\.0\.0\.1:1 –/.test(await open.page.title()),
        'the title',
      )
    })
  })

  describe('another filter', () => {
    it('leaves no topic, no message and no chart of the one before', async () => {
      await start('old/#')
      await sender.publish('old/a', '{"heat":1}', { qos: 1 })
      await eventually(async () => (await rows()).join() === 'old/a', 'the topic')
      await open.button('old/a').click()
      await open.shows('#payload', '"heat": 1')
      await field('Topic filter').fill('new/#')
      await open.button('Connect').click()
      await eventually(async () => (await rows()).length === 0, 'an empty table')
      await open.shows('#inspected', 'Choose a topic')
      expect(await open.at('#message').isHidden()).toBe(true)
      await open.shows('#negotiated', 'new/#: QoS')
      await sender.publish('new/b', '{"cold":1}', { qos: 1 })
      await eventually(async () => (await rows()).join() === 'new/b', 'the topic of the new filter')
      expect(await open.at('.chart option').allTextContents()).not.toContain('heat')
    })
  })

  describe('a topic that is chosen', () => {
    it('fills the publish box', async () => {
      await start('pick/#')
      await sender.publish('pick/this', 'x', { qos: 1 })
      await open.button('pick/this').click()
      expect(await open.at('#publish').getByLabel('Topic').inputValue()).toBe('pick/this')
      await open.button('Publish').click()
      await open.shows('#receipts .done', 'PUBACK')
      await eventually(async () => (await open.column('count')).join() === '2', 'the message')
    })

    it('has its last 500 messages, with milliseconds', async () => {
      await start('many/#')
      await Promise.all(
        Array.from({ length: 510 }, (_, number) =>
          sender.publish('many/one', String(number), { qos: 1 }),
        ),
      )
      await open.button('many/one').click()
      await open.shows('#inspected', 'the last 500 (at most 500, or 1.0 MiB)')
      const times = open.at('#messages time')
      expect(await times.count()).toBe(500)
      expect(await times.first().textContent()).toMatch(/^\d\d:\d\d:\d\d\.\d{3}$/)
      await open.shows('#properties', /Received\d\d:\d\d:\d\d\.\d{3}/)
    })

    it('draws a number that is clicked, also with the keyboard', async () => {
      await start('draw/#')
      const send = (level: number) =>
        sender.publish('draw/tank', JSON.stringify({ a: 1, b: 2, inside: { level }, name: 'x7' }), {
          qos: 1,
        })
      await send(1)
      await open.button('draw/tank').click()
      await eventually(
        async () => (await open.at('#chart-1 select').inputValue()) === 'b',
        'the fields that are drawn unasked',
      )
      await open.at('#payload button').nth(2).click()
      await open.shows('#payload-note', 'inside.level of draw/tank is in chart 1.')
      expect(await open.at('#chart-0 select').inputValue()).toBe('inside.level')
      await send(2)
      await send(5)
      await eventually(async () => (await open.lines('chart-0')) === 1, 'a line')
      expect(await open.at('#payload button').count()).toBe(3)
      await open.at('#payload button').first().focus()
      await open.page.keyboard.press('Enter')
      await open.shows('#payload-note', 'a of draw/tank is in chart 2.')
      expect(await open.at('#chart-1 select').inputValue()).toBe('a')
    })
  })

  describe('JSON that is none', () => {
    it('is said before it is sent, and of what came with that content type', async () => {
      await start('json/#')
      const form = open.at('#publish')
      await form.getByLabel('Topic').fill('json/odd')
      expect(await open.at('#payload-problem').textContent()).toBe('')
      await form.getByLabel('Payload').fill('{"a":}')
      await open.shows('#payload-problem', 'This is no JSON, and would be sent as it is: ')
      await open.button('Publish').click()
      await open.button('json/odd').click()
      await open.shows('#payload-note', 'The content type says JSON, but it is none: ')
      await open.page.getByLabel('JSON', { exact: true }).check()
      await open.shows('#payload-note', 'This is no JSON: ')
      await form.getByLabel('Content type').fill('text/plain')
      await open.shows('#payload-problem', /^$/)
    })
  })

  describe('a message that is kept until it is delivered', () => {
    it('waits for the broker, with its progress in sight; QoS 0 is refused, and what waits can be given up', async () => {
      const memory = new MemoryBroker()
      const first = await memory.serve({ ws: 0 })
      afterAll(() => memory.close())
      const arrived: string[] = []
      memory.on(
        'publish',
        ({ message }) => void arrived.push(new TextDecoder().decode(message.payload)),
      )
      open = await DashboardPage.open(
        browser,
        site.address({ url: first.urls[0] ?? '', topic: 'kept/#', publish: 'kept/note' }),
        {
          colorScheme: 'dark',
        },
      )
      await open.shows('#state', 'Connected to')
      const form = open.at('#publish')
      await form.getByLabel('Content type').fill('text/plain')
      const publish = async (text: string): Promise<void> => {
        await form.getByLabel('Payload').fill(text)
        await open.button('Publish').click()
      }
      expect(await open.at('#queue').isHidden()).toBe(true)
      await form.getByLabel('keep until delivered').check()
      await publish('now')
      await open.shows('#receipts .done', 'PUBACK')
      await open.shows('#queue', /^\s*0 pending, 0 in flight, 0 B, \d\.\d\/s, 1 delivered/)
      await first.close()
      await open.shows('#state', 'Reconnecting')
      for (const text of ['one', 'two', 'three']) await publish(text)
      await open.shows('#queue', /3 pending, 0 in flight, \d+ B, .*1 delivered/)
      await open.shows('#receipts .waiting', 'kept as number')
      expect(await faint(open.page)).toEqual([])
      const second = await memory.serve({ ws: first.ws?.port })
      await open.shows('#queue', '4 delivered')
      await eventually(() => arrived.join() === 'now,one,two,three', 'four messages')
      await form.getByLabel('QoS').selectOption('0')
      await publish('unkept')
      await open.shows('#receipts .failed', 'ERR_QOS0_NOT_QUEUEABLE')
      await form.getByLabel('QoS').selectOption('2')
      await publish('twice')
      await open.shows('#receipts .done', 'PUBCOMP')
      await second.close()
      await open.shows('#state', 'Reconnecting')
      await publish('needless')
      await open.shows('#queue', '1 pending')
      await open.button('Give up').click()
      await open.shows('#receipts .failed', 'ERR_DROPPED')
      await open.shows('#queue', /0 pending, .* 1 given up/)
    })
  })

  describe('connections of before', () => {
    it('can be chosen after the page was loaded anew, without a password, and be forgotten', async () => {
      open = await DashboardPage.open(browser, site.origin)
      expect(await open.at('.recent').isHidden()).toBe(true)
      await open.page.goto(site.address({ url, topic: 'first/#' }))
      await open.shows('#state', 'Connected to')
      await field('User name').fill('ann')
      await field('Password').fill('canary')
      await field('Topic filter').fill('second/#')
      await field('QoS').selectOption('2')
      await open.button('Connect').click()
      await open.shows('#negotiated', 'second/#: QoS 2')
      await field('Topic filter').fill('third/#')
      await open.button('Connect').click()
      await open.shows('#negotiated', 'third/#: QoS')
      expect(
        await open.page.evaluate(() =>
          JSON.stringify({ ...localStorage, ...sessionStorage, at: location.href }),
        ),
      ).not.toContain('canary')
      await open.page.goto(site.origin)
      const list = field('Last connections')
      expect(await list.locator('option').allTextContents()).toEqual([
        'choose …',
        `third/# at ${url} as ann`,
        `second/# at ${url} as ann`,
        `first/# at ${url}`,
        'forget them',
      ])
      await list.selectOption({ index: 2 })
      expect(await field('Broker').inputValue()).toBe(url)
      expect(await field('Topic filter').inputValue()).toBe('second/#')
      expect(await field('User name').inputValue()).toBe('ann')
      expect(await field('QoS').inputValue()).toBe('2')
      expect(await field('Password').inputValue()).toBe('')
      await list.selectOption('forget them')
      expect(await open.at('.recent').isHidden()).toBe(true)
      expect(
        await open.page.evaluate(() =>
          Object.keys(localStorage).filter((key) => key.includes('connection')),
        ),
      ).toEqual([])
    })
  })

  describe.each(['light', 'dark'] as const)('for everybody, in %s', (colorScheme) => {
    it('what is new has its names, contrast and focus, and is not too wide', async () => {
      await start('every/#', url, { colorScheme })
      await field('User name').fill('a-user-with-a-rather-long-name')
      await open.button('Connect').click()
      await open.shows('#state', 'Connected to')
      await open.at('.recent').waitFor()
      for (let count = 0; count < 40; count += 1)
        await sender.publish('every/one', JSON.stringify({ level: count, list: [1, 2, 3] }), {
          qos: 1,
        })
      await open.button('every/one').click()
      await open.at('#publish').getByLabel('Payload').fill('{')
      await open.at('#payload button').first().click()
      await open.shows('#payload-note', 'is in chart')
      expect(await nameless(open.page)).toEqual([])
      expect(await faint(open.page)).toEqual([])
      await open.at('#payload').focus()
      expect(await unseenFocus(open.page, 6)).toEqual([])
      for (const width of [320, 700, 1280]) {
        await open.page.setViewportSize({ width, height: 740 })
        expect([width, await tooWide(open.page)]).toEqual([width, 0])
      }
    })
  })
})
