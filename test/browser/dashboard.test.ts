/**
 * The dashboard of the examples in a real browser, with a real broker: what a person does with it, with pointer or keyboard, on a screen or a phone,
 * and what hostile messages do not do to it.
 */
import { readFile } from 'node:fs/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/node.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { dashboard } from '../package/examples/dashboard.js'
import { Program } from '../package/examples/program.js'
import { requireDist } from '../package/fixture.js'
import { type Broker, startAedes } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { driven, withChromium } from './chromium.js'
import { DashboardPage } from './dashboard-page.js'

/** A picture of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const { serveDashboard } = await dashboard('serve.js')

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

    it('hides a line from the legend, sorts and filters with the keyboard', async () => {
      await start('legend/#')
      await telemetry('legend')
      const first = open.at('#chart-0 .legend button').first()
      await first.focus()
      await open.page.keyboard.press('Enter')
      expect(await first.getAttribute('aria-pressed')).toBe('false')
      await eventually(async () => (await open.lines('chart-0')) === 3, '3 lines')
      await open.close()
      await start('table/#')
      for (const [topic, count] of Object.entries({ 'table/b': 1, 'table/a': 3, 'table/c': 2 }))
        for (let each = 0; each < count; each++) await send(topic, `${topic} says ${each}`)
      await open.shows('#found', '3 topics')
      await eventually(
        async () => (await rows()).join() === 'table/a,table/b,table/c',
        'topics in order',
      )
      await open.button('Count').focus()
      await open.page.keyboard.press('Enter')
      // The page draws when it has the time, and counts may still rise.
      await eventually(
        async () => (await rows()).join() === 'table/b,table/c,table/a',
        'the fewest first',
      )
      await open.page.keyboard.press('Enter')
      await eventually(
        async () => (await rows()).join() === 'table/a,table/c,table/b',
        'the most first',
      )
      expect(await open.at('th.count').getAttribute('aria-sort')).toBe('descending')
      await open.at('#search').focus()
      await open.page.keyboard.type('C SAYS')
      await eventually(
        async () => (await rows()).join() === 'table/c',
        'the one that was looked for',
      )
      expect(await open.at('#found').textContent()).toBe('1 of 3 topics.')
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

    it('reads several filters, each with its QoS', async () => {
      await start('one/#, two/+ @2')
      await open.shows('#negotiated', 'one/#: QoS 1, two/+: QoS 2')
      for (const topic of ['one/a/b', 'two/a', 'two/a/b', 'three']) await send(topic, 'x')
      await eventually(async () => (await rows()).join() === 'one/a/b,two/a', 'both')
    })

    it('shows topics as a tree, with the keyboard', async () => {
      await start('tree/#')
      for (const topic of ['tree/a/1', 'tree/a/2', 'tree/b', 'tree/a']) await send(topic, topic)
      await eventually(async () => (await rows()).length === 4, 'four topics')
      await open.at('#tree').check()
      const seen = async (): Promise<string[]> =>
        (await open.page.locator('#rows tr').allTextContents()).map((text) => text.trim())
      await eventually(async () => (await seen()).join().startsWith('▸ tree4 topics'), 'the root')
      await open.at('#rows button').first().focus()
      await open.page.keyboard.press('ArrowRight')
      await eventually(async () => (await rows()).join() === '▾ tree,▸ a,\u2002 b', 'its levels')
      await open.page.keyboard.press('ArrowDown')
      await open.page.keyboard.press('ArrowRight')
      await eventually(
        async () => (await rows()).join() === '▾ tree,▾ a,\u2002 1,\u2002 2,\u2002 b',
      )
      // A topic with others below it has a value of its own, and the sums of all.
      expect((await open.column('value'))[1]).toBe('tree/a')
      expect((await open.column('count')).slice(0, 2)).toEqual(['4', '3'])
      await open.page.keyboard.press('Enter')
      await open.shows('#inspected', 'tree/a: the last 1')
      await open.at('#search').fill('/2')
      await eventually(async () => (await rows()).join() === '▾ tree,▾ a,\u2002 2', 'what matches')
    })

    it('shows the messages below a level, and topics of the server apart', async () => {
      await start('level/#, $server/#')
      for (const topic of ['$server/up', 'level/a/1', 'level/b', 'level/a/2', 'level/a'])
        await send(topic, topic)
      await eventually(async () => (await rows()).length === 5, 'five topics')
      expect((await rows()).at(-1)).toBe('$server/up')
      await open.page.getByLabel('of the server').uncheck()
      await eventually(async () => (await rows()).length === 4, 'those of devices')
      // The keys of the page: the tree, and below it the branch.
      await open.at('h1').click()
      await open.page.keyboard.press('t')
      await open.button('▸ level').click()
      await open.shows('#inspected', 'level and below: the last 4')
      expect(await open.at('#messages b').allTextContents()).toEqual(['a ', 'a/2 ', 'b ', 'a/1 '])
      await open.button('▸ a').click()
      await open.shows('#inspected', 'level/a: the last 1')
      await open.page.getByLabel('and all below').check()
      await open.shows('#inspected', 'level/a and below: the last 3')
    })

    it('shows CBOR, MessagePack, Protobuf and pictures as what they are', async () => {
      await start('view/#')
      const hex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))
      const reading = {
        name: 'Reading',
        field: [{ name: 'celsius', jsonName: 'celsius', number: 1, type: 1, label: 1 }],
      }
      const file = { name: 'a.proto', package: 'plant', syntax: 'proto3', messageType: [reading] }
      const descriptor = toBinary(
        FileDescriptorSetSchema,
        create(FileDescriptorSetSchema, { file: [file] }),
      )
      const shows = async (
        name: string,
        bytes: Uint8Array,
        text: string,
        contentType = `application/${name}`,
      ): Promise<void> => {
        await send(`view/${name}`, bytes, { properties: { contentType } })
        await open.button(`view/${name}`).click()
        await open.shows('#payload', text)
      }
      await shows('cbor', hex('a2616101616241ff'), '{\n  "a": 1,\n  "b": h\'ff\'\n}')
      await shows('msgpack', hex('82a16101a162c3'), '{\n  "a": 1,\n  "b": true\n}')
      await shows('protobuf', hex('090000000000003540'), '')
      await open.shows('#payload-note', 'Open a descriptor')
      await open.at('#descriptor').setInputFiles({
        name: 'plant.binpb',
        mimeType: 'application/octet-stream',
        buffer: Buffer.from(descriptor),
      })
      await open.shows('#payload', '{\n  "celsius": 21\n}')
      // Twenty million elements in five bytes.
      await shows('large', hex('9a01312d00'), '', 'application/large+cbor')
      await open.shows('#payload-note', 'Not shown as CBOR')
      await open.page.getByLabel('base64', { exact: true }).check()
      await open.shows('#payload', 'mgExLQA=')
      await shows('png', Uint8Array.from(Buffer.from(pixel, 'base64')), '', 'image/png')
      await open.shows('#payload-note', 'image/png, 1 × 1')
    })

    it('sends a message again with all that it has, saves messages, and asks', async () => {
      await start('again/#')
      const properties = {
        contentType: 'application/json',
        responseTopic: 'again/answers',
        messageExpiryInterval: 60,
        userProperties: [['colour', 'red']] as [string, string][],
      }
      await send('again/set', '{"level":1}', { properties })
      await open.button('again/set').click()
      await open.button('Send again…').click()
      await open.page.keyboard.press('ControlOrMeta+A')
      await open.page.keyboard.type('{"level":2}')
      await open.page.keyboard.press('Control+Enter')
      await open.shows('#receipts .done', 'PUBACK')
      await open.shows('#payload', '"level": 2')
      const facts = (await open.at('#properties').textContent()) ?? ''
      for (const text of ['application/json', 'again/answers', 'Expires in', '“colour”red'])
        expect(facts).toContain(text)
      await open.button('Save it').click()
      const form = open.at('#publish')
      // What a field cannot hold as it is, comes back as it was.
      const odd = {
        responseTopic: 'again/a',
        correlationData: Uint8Array.of(0xff, 0xfe),
        userProperties: [
          ['a:b', ' c\nd'],
          ['', '"'],
        ] as [string, string][],
      }
      await send('again/odd', 'one\r\ntwo', { properties: odd })
      await open.button('again/odd').click()
      await open.button('Send again…').click()
      const arrived = await sender.subscribe('again/odd', { qos: 1 })
      await open.button('Publish').click()
      const { value: copy } = await arrived[Symbol.asyncIterator]().next()
      expect(copy?.text()).toBe('one\r\ntwo')
      expect({ ...copy?.properties }).toMatchObject(odd)
      await open.at('[name=encoding]').selectOption('text')
      await form.getByLabel('Topic').fill('again/ask')
      await form.getByLabel('Payload').fill('how much')
      const responder = await sender.respond('again/ask', (question) => `${question.text()}: 7`)
      await open.button('Request').click()
      await open.shows('#receipts .done', /answer after .* ms: how much: 7/)
      await responder.unsubscribe()
      await open.page.reload()
      await open.at('#saved').selectOption({ index: 1 })
      expect(await form.getByLabel('Payload').inputValue()).toBe('{"level":2}')
      await open.button('Forget').click()
      expect(await open.at('#saved option').count()).toBe(1)
    })

    it('removes retained messages, which it lists first', async () => {
      await start('kept/#')
      for (const topic of ['kept/1', 'kept/2/deep', 'kept/3'])
        await send(topic, 'x', { retain: true })
      await open.button('Remove retained…').click()
      await open.at('#retained input').fill('kept/2/#')
      await open.button('Look').click()
      await open.shows('#retained-note', '1 message is retained there.')
      await open.button('Remove it').click()
      await open.shows('#retained-note', '0 messages are retained there.')
      await open.at('#retained input').fill('kept/#')
      await open.button('Look').click()
      await open.shows('#retained-note', '2 messages are retained there.')
      expect(await open.at('#retained-topics li').allTextContents()).toEqual(['kept/1', 'kept/3'])
      await open.button('Close').click()
      // A topic that looks like two filters.
      await send('kept/5, kept/1', 'x', { retain: true })
      await open.button('kept/5, kept/1').click()
      await open.button('Remove retained…').click()
      await open.shows('#retained-note', '1 message is retained there.')
      expect(await open.at('#retained-topics li').allTextContents()).toEqual(['kept/5, kept/1'])
      await open.button('Remove it').click()
      await open.shows('#retained-note', '0 messages')
      await open.button('Close').click()
      await send('kept/1', '', { retain: true })
      await send('kept/3', '', { retain: true })
    })

    it('shows what changed since the message before; saves and opens recordings', async () => {
      await start('change/#')
      const properties = { userProperties: [['k', 'v']] as [string, string][] }
      await send('change/json', '{"heat":20,"mode":"on"}')
      await send('change/json', '{"heat":21,"mode":"on"}', { properties })
      await send('change/bytes', Uint8Array.of(0xff, 0))
      await eventually(async () => (await rows()).length === 2, 'two topics')
      await open.button('change/json').click()
      await open.at('#changes').check()
      await open.shows('#payload ins', '+   "heat": 21,')
      await open.shows('#payload del', '-   "heat": 20,')
      const saved = async (name: string): Promise<string> => {
        const [download] = await Promise.all([
          open.page.waitForEvent('download'),
          open.button(name).click(),
        ])
        return readFile(await download.path(), 'utf8')
      }
      const numbers = (await saved('Save numbers')).split('\r\n')
      expect(numbers.map((line) => line.replace(/^[\d-]+T[\d:.]+Z/, ''))).toEqual([
        'time,heat',
        ',20',
        ',21',
        '',
      ])
      const text = await saved('Save')
      const records = text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(records.map(({ time: _time, ...rest }) => rest)).toEqual([
        { topic: 'change/json', qos: 1, retain: false, payload: '{"heat":20,"mode":"on"}' },
        {
          topic: 'change/json',
          qos: 1,
          retain: false,
          payload: '{"heat":21,"mode":"on"}',
          properties,
        },
        { topic: 'change/bytes', qos: 1, retain: false, base64: '/wA=' },
      ])
      const recording = `${text}not JSON\n${JSON.stringify({ ...records[0], topic: 'other' })}\n`
      await open.at('#file').setInputFiles({
        name: 'plant.jsonl',
        mimeType: 'application/jsonl',
        buffer: Buffer.from(recording),
      })
      await open.shows('#file-note', '4 messages of plant.jsonl; 1 line is no message: line 4: ')
      await eventually(async () => (await rows()).join() === 'change/bytes,change/json,other')
      await open.shows('#state', 'Disconnected')
      await open.button('change/json').click()
      await open.shows('#payload ins', '+   "heat": 21,')
      expect(await saved('Save')).toBe(
        `${text}${JSON.stringify({ ...records[0], topic: 'other' })}\n`
          .split('\n')
          .sort((one, other) => (one === '' ? 1 : other === '' ? -1 : one.localeCompare(other)))
          .join('\n'),
      )
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
      await open.page.getByLabel('Broker').fill('wss://127.0.0.1:1/mqtt')
      await open.button('Connect').click()
      await open.shows('#problem', 'refuses its certificate is seen at https://127.0.0.1:1.')
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

  describe('what a person chooses', () => {
    const url = (): string => broker.urls.WebSocket ?? ''
    const field = (label: string) => open.at('#connect').getByLabel(label)

    it('another filter leaves no topic, no message and no chart of the one before', async () => {
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

    it('a message that is kept until it is delivered waits for the broker, with its progress in sight; QoS 0 is refused, and what waits can be given up', async () => {
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
      const second = await memory.serve({ ws: first.ws?.port })
      await open.shows('#queue', '4 delivered')
      await eventually(() => arrived.join() === 'now,one,two,three', 'four messages')
      await form.getByLabel('QoS').selectOption('0')
      await publish('unkept')
      await open.shows('#receipts .failed', 'ERR_QOS0_NOT_QUEUEABLE')
      await form.getByLabel('QoS').selectOption('2')
      await second.close()
      await open.shows('#state', 'Reconnecting')
      await publish('needless')
      await open.shows('#queue', '1 pending')
      await open.button('Give up').click()
      await open.shows('#receipts .failed', 'ERR_DROPPED')
      await open.shows('#queue', /0 pending, .* 1 given up/)
    })

    it('connections of before can be chosen after the page was loaded anew, without a password, and be forgotten', async () => {
      open = await DashboardPage.open(browser, site.origin)
      expect(await open.at('.recent').isHidden()).toBe(true)
      await open.page.goto(site.address({ url: url(), topic: 'first/#' }))
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
      // The same address again: as whom is known, the password is not.
      await open.page.reload()
      await open.shows('#problem', 'as ann: type the password, and press Connect')
      expect(await field('User name').inputValue()).toBe('ann')
      await open.page.goto(site.origin)
      const list = field('Last connections')
      expect(await list.locator('option').allTextContents()).toEqual([
        'choose …',
        `third/# at ${url()} as ann`,
        `second/# at ${url()} as ann`,
        `first/# at ${url()}`,
        'forget them',
      ])
      await list.selectOption({ index: 2 })
      expect(await field('Broker').inputValue()).toBe(url())
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

  it('a saved connection has all that a connection has, and its secret only when that is wanted', async () => {
    let asked: unknown
    const memory = new MemoryBroker({
      authenticate(packet) {
        asked = packet
        return packet.username === 'ann'
      },
    })
    const { urls } = await memory.serve({ ws: 0 })
    afterAll(() => memory.close())
    open = await DashboardPage.open(browser, site.address({ topic: 'x/#' }))
    await open.at('summary').first().click()
    const more = (label: string) => open.page.getByLabel(label, { exact: true })
    await more('Broker').fill(urls[0] ?? '')
    for (const [label, value] of Object.entries({
      'User name': 'ann',
      Password: 'canary',
      'Client identifier': 'desk-7',
      'Keep-alive, seconds': '12',
      'User properties, lines of name: value': 'floor: 3',
      'Will to': 'desks/7',
      Name: 'the desk',
    }))
      await more(label).fill(value)
    const stored = (): Promise<string> => open.page.evaluate('JSON.stringify({ ...localStorage })')
    await open.button('Save connection').click()
    expect(await stored()).not.toContain('canary')
    await open.page.getByLabel('with its secret').check()
    await open.button('Save connection').click()
    expect(await stored()).toContain('canary')
    await open.page.goto(site.origin)
    await open.at('#recent').selectOption({ index: 1 })
    await open.button('Connect').click()
    await open.shows('#state', 'Connected to')
    expect(asked).toMatchObject({
      clientId: 'desk-7',
      keepAlive: 12,
      properties: { userProperties: [['floor', '3']] },
      will: { topic: 'desks/7' },
    })
    await open.at('summary').first().click()
    await more('Keep-alive, seconds').fill('70000')
    await open.at('summary').first().click()
    await open.button('Connect').click()
    // The field that is wrong is unfolded.
    expect(await more('Keep-alive, seconds').isVisible()).toBe(true)
    await more('Keep-alive, seconds').fill('30')
    await open.at('[name=protocolVersion]').selectOption('4')
    await more('User properties, lines of name: value').fill('')
    await open.button('Connect').click()
    await open.shows('#negotiated', 'MQTT version3.1.1')
    await open.button('Publish').click()
    await open.shows('#receipts .done', 'MQTT 3.1.1 has no content type')
    // What was saved is not forgotten with what was used.
    await open.at('#recent').selectOption('forget them')
    expect(await open.at('#recent option').allTextContents()).toEqual([
      'choose …',
      expect.stringMatching(/^the desk: /),
    ])
    await more('User properties, lines of name: value').fill('no colon')
    await open.button('Connect').click()
    await open.shows('#problem', 'is no line name: value')
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
      expect(await tooWide(open.page)).toBe(0)
    })
  })

  describe.each(['light', 'dark'] as const)('for everybody, in %s', (colorScheme) => {
    it('every control has a name, every text its contrast, every focus its outline, and nothing is too wide', async () => {
      await start('all/#', { colorScheme, reducedMotion: 'reduce' })
      await telemetry('all')
      await eventually(async () => (await rows()).length === 4, 'topics')
      await open.at('#rows button').first().click()
      await open.button('Publish').click()
      await open.shows('#receipts .done', 'PUBACK')
      await open.page.getByLabel('Topic', { exact: true }).fill('#')
      await open.button('Publish').click()
      await open.shows('#receipts .failed', 'ERR_')
      await open.at('#chart-0 .legend button').last().click()
      expect(await nameless(open.page)).toEqual([])
      expect(await faint(open.page)).toEqual([])
      const ground = await open.page.evaluate(
        'getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]',
      )
      expect(Number(ground) > 128).toBe(colorScheme === 'light')
      await open.at('h1').click()
      expect(await unseenFocus(open.page, 25)).toEqual([])
      for (const width of [320, 700, 1280]) {
        await open.page.setViewportSize({ width, height: 740 })
        expect([width, await tooWide(open.page)]).toEqual([width, 0])
      }
    })
  })

  describe('npm start', () => {
    const page = /^Dashboard +(http:\S+)$/m

    /** Starts the demo, and opens the page that it prints. */
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

  it('the theme is chosen, and remembered', async () => {
    await start('theme/#', { colorScheme: 'light' })
    const scheme = () => open.page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await scheme()
    await open.page.locator('#theme').selectOption('dark')
    const dark = await scheme()
    expect(dark).not.toBe(light)
    await open.page.reload()
    await open.shows('#state', 'Connected')
    expect(await scheme()).toBe(dark)
    await open.page.locator('#theme').selectOption('auto')
    expect(await scheme()).toBe(light)
  })
})
