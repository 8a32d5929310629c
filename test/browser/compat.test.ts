/** `mqwire/compat` in a real browser: the browser's entry, WebSockets, payloads without Buffer, and what a page cannot have. */
import { build } from 'esbuild'
import { beforeAll, expect, it } from 'vitest'
import { requireDist, root } from '../package/fixture.js'
import { type Broker, startAedes } from '../real/brokers.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'

const program = `
import mqtt, { connectAsync } from 'mqwire/compat'

globalThis.run = async (url) => {
  const events = []
  const client = await connectAsync(url, { clientId: 'page', reconnectPeriod: 50 })
  for (const event of ['close', 'end', 'error']) client.on(event, () => events.push(event))
  const message = new Promise((resolve) => client.once('message', (topic, payload, packet) => resolve({ topic, payload, packet })))
  await client.subscribeAsync('a/+', { qos: 1 })
  await client.publishAsync('a/b', 'text', { qos: 1 })
  const { topic, payload, packet } = await message
  const { protocol } = client.options
  await client.endAsync()
  return {
    topic,
    text: new TextDecoder().decode(payload),
    kind: payload.constructor.name,
    cmd: packet.cmd,
    protocol,
    events,
    hasBuffer: 'Buffer' in globalThis,
  }
}

globalThis.ofPage = () => {
  const client = mqtt.connect('/mqtt', { manualConnect: true })
  const { protocol, hostname, path } = client.options
  client.end(true)
  return { protocol, hostname, path }
}

globalThis.refused = (options) => {
  try {
    mqtt.connect('wss://127.0.0.1:1', options)
    return 'nothing'
  } catch ({ code, option }) {
    return [code, option].join(' ')
  }
}
`

withChromium(() => {
  const setting = drivenAndSite()
  let broker: Broker
  let script = ''
  beforeAll(async () => {
    await requireDist()
    broker = await startAedes()
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: root },
      bundle: true,
      write: false,
      format: 'iife',
      platform: 'browser',
      logLevel: 'error',
    })
    script = outputFiles[0]?.text ?? ''
    return () => broker.stop()
  })

  it('connects, publishes, gets it as a Uint8Array, ends; takes the address of its page; refuses what a page cannot have', async () => {
    const page = await setting.browser.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(`${setting.site.origin}/other`)
    await page.addScriptTag({ content: script })
    expect(await page.evaluate(`run(${JSON.stringify(broker.urls.WebSocket)})`)).toEqual({
      topic: 'a/b',
      text: 'text',
      kind: 'Uint8Array',
      cmd: 'publish',
      protocol: 'ws',
      events: ['close', 'end'],
      hasBuffer: false,
    })
    expect(await page.evaluate('ofPage()')).toEqual({
      protocol: 'ws',
      hostname: new URL(setting.site.origin).hostname,
      path: '/mqtt',
    })
    for (const options of [
      "{ ca: 'x' }",
      "{ wsOptions: { headers: { a: 'b' } } }",
      '{ rejectUnauthorized: false }',
      "{ protocol: 'mqtt' }",
    ])
      expect(await page.evaluate(`refused(${options})`)).toMatch(
        /^ERR_(?:UNSUPPORTED_OPTION endpoint\.(?:tls|headers)|INVALID_BROKER_URL url)$/,
      )
    await page.close()
    expect(complaints).toEqual([])
  })
})
