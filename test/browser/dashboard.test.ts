/**
 * The dashboard of the examples in a real browser, with a real broker: what a person does with it, with pointer or keyboard, on a screen or a phone,
 * and what hostile messages do not do to it.
 */
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { exampleModule, Program } from '../package/examples/program.js'
import { requireDist } from '../package/fixture.js'
import { type Broker, startAedes } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
import { expectAccessible } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { DashboardPage } from './dashboard-page.js'

const { serveDashboard } = await exampleModule('dashboard/serve.js')

withChromium(() => {
  let browser: Browser
  let site: Awaited<ReturnType<typeof serveDashboard>>
  let broker: Broker
  let sender: Client
  let open: DashboardPage
  beforeAll(async () => {
    await requireDist()
    ;[browser, site, broker] = await Promise.all([driven(), serveDashboard(), startAedes()])
    sender = await connect(broker.urls.TCP ?? '')
    return async () => {
      await browser.close()
      await sender.disconnect({ timeout: 0 })
      await Promise.all([site.stop(), broker.stop()])
    }
  })
  afterEach(async () => {
    // The browser itself says so of a connection that failed.
    expect(open.complaints.filter((text) => !text.includes('WebSocket connection to'))).toEqual([])
    await open.close()
  })

  /** Opens the page; by itself it connects and reads everything below the topic. */
  async function start(
    topic: string,
    options = {},
    url = broker.urls.WebSocket ?? '',
  ): Promise<void> {
    open = await DashboardPage.open(
      browser,
      site.address({ url, topic, publish: `${topic.split('/')[0]}/note` }),
      options,
    )
    if (url === broker.urls.WebSocket) await open.shows('#state', 'Connected to ws://127.0.0.1')
    await open.page.evaluate(
      "document.querySelectorAll('details').forEach((each) => { each.open = true })",
    )
    if (url === broker.urls.WebSocket) await open.shows('#negotiated', /: QoS/)
  }

  const send = (topic: string, payload: string | Uint8Array, options = {}) =>
    sender.publish(topic, payload, { qos: 1, ...options })
  const rows = () => open.column('topic')

  /** The devices of a plant publish until so many lines are seen in each of the charts. */
  async function telemetry(
    plant: string,
    charts: Readonly<Record<string, number>> = { 'chart-0': 4 },
  ): Promise<void> {
    let round = 0
    const drawn = async (): Promise<boolean> => {
      round += 1
      for (let device = 0; device < 4; device++) {
        const heat = 20 + device + Math.sin(round + device)
        await send(
          `${plant}/${device}/json`,
          JSON.stringify({ celsius: heat, bar: 3 - heat / 20, count: round }),
        )
      }
      for (const [chart, lines] of Object.entries(charts))
        if ((await open.lines(chart)) !== lines) return false
      return true
    }
    await eventually(drawn, `lines in ${Object.keys(charts)}`)
  }

  describe('the dashboard', () => {
    it('connects, draws charts, lists topics, and asks nobody else for anything', async () => {
      await start('plant/#')
      await telemetry('plant', { 'chart-0': 4, 'chart-1': 4, 'chart-rate': 1 })
      await open.shows('#found', '4 topics.')
      // A counter is no chart that anybody asked for.
      expect(
        await open
          .at('.chart select')
          .evaluateAll((all) => all.map((each) => (each as HTMLSelectElement).value)),
      ).toEqual(['celsius', 'bar'])
      expect(await open.at('#chart-0 .pattern').textContent()).toBe('plant/…/json')
      expect(await rows()).toEqual([0, 1, 2, 3].map((device) => `plant/${device}/json`))
      expect(await open.figures()).toMatchObject({
        topics: '4',
        'dropped unread': '0',
        'connected for': expect.stringMatching(/^\d+ s$/),
      })
      expect(await open.at('#negotiated').textContent()).toContain('plant/#: QoS 1')
      const elsewhere = open.requests.filter((url) => !url.startsWith(site.origin))
      expect(elsewhere).toEqual([])
    })

    it('publishes and shows the receipt, or the typed error and what became of the message', async () => {
      await start('publish/#')
      const form = open.at('#publish')
      await form.getByLabel('Payload').fill('{"hello":"there"}')
      await form.getByLabel('QoS').selectOption('2')
      await form.getByLabel('Topic').press('Enter')
      await open.shows('#receipts .done', /PUBCOMP 0x00 Success, packet \d+/)
      await eventually(async () => (await rows()).join() === 'publish/note', 'the topic')
      await form.getByLabel('Topic').fill('not/#')
      await open.button('Publish').click()
      expect(await open.shows('#receipts .failed', 'ERR_INVALID_TOPIC')).toContain(
        'not-sent (it was not sent)',
      )
      await open.button('Disconnect').click()
      await open.shows('#state', 'Disconnected')
      await form.getByLabel('Topic').fill('publish/late')
      await open.button('Publish').click()
      await open.shows('#receipts .failed', 'ERR_CLOSED')
    })

    it('shows the last messages of a topic with everything that they have', async () => {
      await start('inspect/#')
      const userProperties = [['colour', 'red\n']] as [string, string][]
      await send('inspect/json', 'first')
      await send('inspect/json', '{"a":[1,"b"]}', {
        retain: true,
        properties: { contentType: 'application/json', userProperties, messageExpiryInterval: 60 },
      })
      await open.button('inspect/json').click()
      await open.shows('#payload', '{\n  "a": [\n    1,\n    "b"\n  ]\n}')
      const facts = await open.at('#properties').textContent()
      for (const text of [
        'Content typeapplication/json',
        '“colour”red␊',
        'QoS1',
        'Size13 bytes',
        'Expires in1 min',
      ])
        expect(facts).toContain(text)
      await open.page.getByLabel('hexadecimal').check()
      expect(await open.at('#payload').textContent()).toContain('000000  7b 22 61 22')
      await open.at('#messages button').last().click()
      await open.page.getByLabel('text', { exact: true }).check()
      expect(await open.at('#payload').textContent()).toBe('first')
      // It stays where the user is, whatever comes.
      await send('inspect/json', 'third')
      await eventually(async () => (await open.figures())['messages'] === '3', 'the third message')
      expect(await open.at('#payload').textContent()).toBe('first')
      await open.page.getByLabel('show the newest').check()
      await open.shows('#payload', 'third')
      await send('inspect/json', '', { retain: true })
    })

    it('says that it reconnects when the broker is gone, with attempt and delay, and that it is back', async () => {
      const mortal = await startAedes()
      afterAll(() => mortal.stop())
      await start('life/#', {}, mortal.urls.WebSocket)
      await open.shows('#state', 'Connected to')
      await mortal.kill()
      await open.shows('#state', /Reconnecting to ws:\S+, attempt \d+/)
      await open.shows('#countdown', /^in \d+\.\d s$/)
      await open.shows('#problem', 'ERR_CONNECT')
      expect(await open.at('#state').getAttribute('data-state')).toBe('reconnecting')
      await mortal.live()
      // It may have come back by itself: then the button is gone, and has nothing to do.
      await open.page.evaluate("document.getElementById('retry').click()")
      await open.shows('#state', 'Connected to')
      await eventually(async () => open.at('#problem').isHidden(), 'no problem')
      const other = await connect(mortal.urls.TCP ?? '')
      await other.publish('life/sign', 'back', { qos: 1 })
      await eventually(async () => (await rows()).join() === 'life/sign', 'a topic')
      await other.disconnect()
      expect(await open.at('#log').textContent()).toMatch(/connected.*reconnecting.*connected/s)
    })

    it('says what is wrong with an address', async () => {
      await start('x', {}, 'http://127.0.0.1:1')
      await open.shows('#problem', 'ERR_INVALID_BROKER_URL')
      await open.page.getByLabel('Broker').fill(broker.urls.WebSocket ?? '')
      await open.page.getByLabel('Topic filter').fill('x/#/y')
      await open.button('Connect').click()
      await open.shows('#problem', 'ERR_INVALID_TOPIC')
      await open.page.getByLabel('Topic filter').fill('x/#')
      await open.page.getByLabel('Password').fill('canary')
      await open.button('Connect').click()
      await open.shows('#state', 'Connected')
      expect(open.page.url()).toContain('topic=x%2F%23')
      expect(open.page.url()).not.toContain('canary')
    })
  })

  describe('hostile messages', () => {
    const markup = '<img src=x onerror="globalThis.caught=1"><script>globalThis.caught=1</script>'
    const left = '\u202e'

    it('are text wherever they are shown, and bounded', async () => {
      await start('evil/#')
      const deep = '['.repeat(32_768) + ']'.repeat(32_768)
      const userProperties = [[markup, `${left}${markup}`]] as [string, string][]
      await send(`evil/${markup}`, markup, { properties: { contentType: markup, userProperties } })
      await send('evil/control', `\0\u0007${left}x\nnew line`)
      await send('evil/deep', deep)
      await send(
        'evil/numbers',
        JSON.stringify({ [markup]: 1e12, low: -1e12, tiny: 1e-12, ['__proto__']: 5 }),
      )
      await send(
        'evil/numbers',
        JSON.stringify({ [markup]: -1e12, low: 1e12, tiny: 999_999_999_999.1 }),
      )
      await send(
        'evil/bytes',
        Uint8Array.from({ length: 65_536 }, (_, index) => index),
      )
      await open.shows('#found', '5 topics')
      for (let index = 0; index < 5; index++) {
        await open.at('#rows button').nth(index).click()
        await open.shows('#inspected', 'the last')
        for (const format of ['text', 'JSON', 'hexadecimal']) {
          await open.page.getByLabel(format, { exact: true }).check()
          expect((await open.at('#payload').textContent())?.length).toBeLessThanOrEqual(65_536)
        }
      }
      expect(
        await open.page.evaluate(() => [
          document.images.length,
          document.scripts.length,
          Reflect.get(globalThis, 'caught'),
        ]),
      ).toEqual([0, 1, undefined])
      expect(await open.at('body').textContent()).not.toContain(left)
      const shown = await open.column('topic')
      expect(shown).toContain(`evil/${markup}`)
    })
  })

  it('every control has a name, every text its contrast, every focus its outline, and nothing is too wide', async () => {
    await start('all/#', { reducedMotion: 'reduce' })
    await telemetry('all')
    await eventually(async () => (await rows()).length === 4, 'topics')
    await open.at('#rows button').first().click()
    await open.button('Publish').click()
    await open.shows('#receipts .done', 'PUBACK')
    await open.page.getByLabel('Topic', { exact: true }).fill('#')
    await open.button('Publish').click()
    await open.shows('#receipts .failed', 'ERR_')
    await open.at('#chart-0 .legend button').last().click()
    await open.at('h1').click()
    await expectAccessible(open.page, 25, [320, 700, 1280])
  })

  describe('npm start', () => {
    const page = /^Dashboard +(http:\S+)$/m

    async function demo(args: string, url?: string): Promise<Program> {
      const program = new Program('demo/main.js', args.split(' '), url)
      await program.prints('Stop with')
      open = await DashboardPage.open(browser, page.exec(program.output)?.[1] ?? '')
      return program
    }

    it('keeps the secrets of the address of another broker to itself', async () => {
      const secret = (broker.urls.WebSocket ?? '').replace('ws://', 'ws://user:canary@')
      const program = await demo('--devices 2 --rate 10', secret)
      await open.shows('#found', /^[12] topics/)
      program.signal('SIGINT')
      const { code, output } = await program.ending
      expect([code, output.includes('canary')]).toEqual([0, false])
      expect(output).toContain(
        'User name, password and query of MQTT_URL are to be filled in there.',
      )
    })

    it('opens with the dashboard of its devices, and ends in order while the page is open', async () => {
      const program = await demo('--devices 4 --rate 10 --port 1024')
      await open.shows('#found', /^[45] topics/)
      for (const chart of ['chart-0', 'chart-1'])
        await eventually(async () => (await open.lines(chart)) === 2, `lines in ${chart}`)
      expect(
        await open
          .at('.chart select')
          .evaluateAll((all) => all.map((each) => (each as HTMLSelectElement).value)),
      ).toEqual(['temperature', 'pressure'])
      await open.button('Publish').click()
      await open.shows('#receipts .done', 'PUBACK')
      program.signal('SIGINT')
      const { code, output } = await program.ending
      expect(output).toContain('OK: nothing lost, nothing twice.')
      expect(code).toBe(0)
      await open.shows('#state', 'Reconnecting')
    })
  })
})
