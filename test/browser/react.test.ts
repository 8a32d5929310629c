/** The hooks of mqwire/react in a real browser, with the development build of React: counted where the packets pass, before real brokers. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connect } from '../../src/client/node.js'
import { Program } from '../package/examples/program.js'
import { requireDist, root } from '../package/fixture.js'
import { brokerAndClient } from '../real/broker-and-client.js'
import { startAedes } from '../real/brokers.js'
import { eventually } from '../real/waiting.js'
import { faint, nameless, tooWide, unseenFocus } from './accessible.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'
import { Tap } from './tap.js'

async function bundled(entry: string, platform: 'browser' | 'node'): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    ...(entry.endsWith('.jsx')
      ? { entryPoints: [entry] }
      : { stdin: { contents: entry, resolveDir: root, loader: 'jsx' } }),
    bundle: true,
    write: false,
    format: platform === 'node' ? 'cjs' : 'iife',
    platform,
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

withChromium(() => {
  const setting = drivenAndSite()
  let program = ''
  beforeAll(async () => {
    program = await bundled('test/browser/programs/react.jsx', 'browser')
  })

  describe('the React hooks', () => {
    const both = brokerAndClient(startAedes)
    let tap: Tap
    let page: Page
    let count = 0
    let topic = ''
    const complaints: string[] = []
    beforeEach(async () => {
      count += 1
      topic = `react/hooks/${count}`
      tap = await Tap.before(both.broker.urls.WebSocket ?? '')
      page = await setting.browser.newPage()
      complaints.length = 0
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on(
        'console',
        (message) =>
          ['warning', 'error'].includes(message.type()) && complaints.push(message.text()),
      )
      await page.goto(`${setting.site.origin}/other`)
      await page.evaluate(
        "document.body.append(Object.assign(document.createElement('div'), { id: 'root' }))",
      )
      await page.addScriptTag({ content: program })
      await ask('mount', tap.url, `hooks-${count}`, topic)
      await shows('state', 'connected')
      await eventually(() => packets('subscribe') > 0, 'SUBSCRIBE')
      return async () => {
        await page.close()
        await tap.stop()
        expect(complaints).toEqual([])
      }
    })

    const ask = (name: string, ...values: (string | boolean)[]): Promise<unknown> =>
      page.evaluate(`react.${name}(${JSON.stringify(values).slice(1, -1)})`)
    const shows = (id: string, text: string) =>
      eventually(
        async () => (await page.locator(`#${id}`).textContent()) === text,
        `${text} in ${id}`,
      )
    const facts = () =>
      ask('facts') as Promise<{
        renders: number
        frames: number
        effects: number
        clients: number
        publishers: number
      }>
    const packets = (type: 'connect' | 'disconnect' | 'subscribe' | 'unsubscribe'): number =>
      tap.links.reduce((sum, link) => sum + link.count(type), 0)

    async function send(...texts: string[]): Promise<void> {
      await Promise.all(texts.map((text) => both.client.publish(topic, text, { qos: 1 })))
    }

    /** Unmounts for good: one goodbye, and nothing that comes after it. */
    async function ends(): Promise<void> {
      await ask('unmount')
      await eventually(() => tap.links[0]?.closed, 'the end of the connection')
      expect([packets('connect'), packets('disconnect'), tap.links.length]).toEqual([1, 1, 1])
      expect(tap.links[0]?.packets.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    }

    it('StrictMode: one CONNECT, one SUBSCRIBE for components that share a filter, new literals change nothing; unmounted: one DISCONNECT', async () => {
      await send('first')
      for (const id of ['one', 'two', 'latest']) await shows(id, 'first')
      for (let time = 0; time < 10; time += 1) await ask('again')
      await send('second')
      await shows('two', 'first,second')
      await shows('latest', 'second')
      expect(await ask('publish', topic, 'third')).toBe(0)
      await shows('one', 'first,second,third')
      // One for each quality that was asked for on the filter.
      expect(packets('subscribe')).toBeLessThanOrEqual(2)
      expect(packets('unsubscribe')).toBe(0)
      const { clients, publishers, effects } = await facts()
      // StrictMode runs effects twice when a component is mounted.
      expect([clients, effects]).toEqual([1, 2])
      expect(publishers).toBeLessThanOrEqual(2)
      await ends()
    })

    it('latest values of a channel: components share one subscription, see retained and live values, and leave it with the last of them', async () => {
      await both.client.publish(`${topic}/level/a`, '1', { qos: 1, retain: true })
      const asked = packets('subscribe')
      await ask('levels', tap.url, `hooks-${count}`, topic, true)
      await shows('left', 'a=1')
      await shows('right', 'a=1')
      await both.client.publish(`${topic}/level/b`, '2', { qos: 1 })
      await shows('right', 'a=1,b=2')
      await both.client.publish(`${topic}/level/a`, '', { qos: 1, retain: true })
      await shows('left', 'b=2')
      expect(packets('subscribe')).toBe(asked + 1)
      await ask('levels', tap.url, `hooks-${count}`, topic, false)
      await both.client.publish(`${topic}/level/c`, '3', { qos: 1 })
      await shows('left', 'b=2,c=3')
      await ends()
    })

    it('a client that has ended is shown as such, and the next components get a new one', async () => {
      const again = (...more: boolean[]) => ask('mount', tap.url, `hooks-ended`, topic, ...more)
      await ask('unmount')
      await again(false)
      await eventually(
        () => tap.links[1]?.packets.some(({ type }) => type === 'subscribe'),
        'SUBSCRIBE',
      )
      tap.links[1]?.cut()
      await shows('state', 'closed')
      await ask('unmount')
      await again()
      await shows('state', 'connected')
      expect(await ask('publish', topic, 'anew')).toBe(0)
      await shows('two', 'anew')
      expect(tap.links.map((link) => link.count('connect'))).toEqual([1, 1, 1])
    })

    it('Fast Refresh, with the state kept and with it thrown away: the same connection', async () => {
      await send('before')
      await shows('one', 'before')
      expect(await ask('refresh', 'second', 'a')).toBe(true)
      await shows('version', 'second')
      expect(await ask('refresh', 'third', 'b')).toBe(true)
      await shows('version', 'third')
      expect((await facts()).effects).toBeGreaterThan(2)
      await send('after')
      await shows('one', 'before,after')
      await shows('state', 'connected')
      expect([packets('connect'), packets('disconnect'), packets('unsubscribe')]).toEqual([1, 0, 0])
      expect((await facts()).clients).toBe(1)
      await ends()
    })

    it('unmounted and mounted again at once, in a new root: the same connection', async () => {
      for (let time = 0; time < 3; time += 1) {
        await ask('unmount')
        await ask('mount', tap.url, `hooks-${count}`, topic)
        await shows('state', 'connected')
      }
      await send('there')
      await shows('one', 'there')
      expect([packets('connect'), packets('disconnect'), packets('unsubscribe')]).toEqual([1, 0, 0])
      await ends()
    })

    it('a flood is shown a frame at a time, its end only; another filter leaves the first', async () => {
      const before = await facts()
      await send(...Array.from({ length: 120 }, (_, index) => String(index)))
      await shows('one', '115,116,117,118,119')
      const { renders, frames } = await facts()
      // StrictMode renders twice, and there are two feeds, whose frames may come apart.
      expect(renders - before.renders).toBeLessThanOrEqual(4 * (frames - before.frames + 1))
      expect(renders).toBeGreaterThan(before.renders)
      await ask('render', tap.url, `hooks-${count}`, `${topic}/other`)
      await eventually(() => packets('unsubscribe') > 0, 'UNSUBSCRIBE')
      await both.client.publish(`${topic}/other`, 'here', { qos: 1 })
      await shows('one', 'here')
      await ends()
    })
  })

  describe('npm run react', () => {
    let program: Program
    let address = ''
    let page: Page
    const complaints: string[] = []
    beforeAll(async () => {
      program = new Program('react/serve.js', ['--port', '0'], '', {}, 60_000)
      await program.prints('(Ctrl-C stops)')
      address = /http:\S+/.exec(program.output)?.[0] ?? ''
      page = await setting.browser.newPage({ viewport: { width: 375, height: 800 } })
      page.on('pageerror', (error) => complaints.push(error.message))
      return async () => {
        await page.close()
        program.signal('SIGTERM')
        expect((await program.ending).code).toBe(0)
      }
    })

    it('brings a broker and a device: the page is connected, shows the time, and publishes', async () => {
      await page.goto(address)
      await page.getByText('Client: connected').waitFor()
      await page.getByText(/^Latest on react\/clock: \d\d:\d\d:\d\d$/).waitFor()
      expect(await page.getByRole('alert').count()).toBe(0)
      await page.getByRole('textbox', { name: /^react/ }).fill('greeting')
      await page.getByRole('textbox', { name: 'Message' }).fill('hello')
      await page.getByRole('button', { name: 'Publish' }).click()
      await page.getByText('Acknowledged.').waitFor()
      await page.getByText('react/greeting: hello').waitFor()
      expect(complaints).toEqual([])
    })

    it('has names, contrast in both colours, and a visible focus, on a phone', async () => {
      const sender = await connect(new URL(address).searchParams.get('url') ?? '')
      for (let number = 0; number < 20; number += 1)
        await sender.publish('react/number', `${number} is a number`)
      await sender.disconnect()
      await page.getByText('19 is a number').waitFor()
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await faint(page)).toEqual([])
      }
      expect(await nameless(page)).toEqual([])
      expect(await unseenFocus(page, 4)).toEqual([])
      expect(await tooWide(page)).toBe(0)
    })
  })
})

// Counts what a process opens: sockets, look-ups, timers, ports.
const counted = `
const { createHook } = require('node:async_hooks')
const opened = []
createHook({ init: (id, type) => /TCP|PIPE|GETADDRINFO|TLS|Timeout|Immediate|MESSAGEPORT/.test(type) && opened.push(type) }).enable()
`

const onServer = `
import { renderToString } from 'react-dom/server'
import { App } from './examples/react/app.tsx'
const loaded = opened.splice(0)
const html = renderToString(<App url="ws://127.0.0.1:1" />)
const rendered = opened.splice(0)
clearTimeout(setTimeout(() => undefined, 1000))
require('node:net').connect(1, '127.0.0.1').on('error', () => console.log(JSON.stringify({ html, loaded, rendered, control: opened })))
`

describe('the React hooks on a server', () => {
  it('importing and rendering opens no socket and sets no timer; the process ends by itself', async () => {
    await requireDist()
    const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-react-'))
    try {
      const file = path.join(folder, 'server.cjs')
      await writeFile(file, counted + (await bundled(onServer, 'node')))
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
        timeout: 10_000,
      })
      const { html, loaded, rendered, control } = JSON.parse(stdout) as Record<
        string,
        string | string[]
      >
      expect(stderr).toBe('')
      expect(html).toContain('Client: <!-- -->idle')
      expect([loaded, rendered]).toEqual([[], []])
      // They would have been seen.
      expect(control).toEqual(expect.arrayContaining(['Timeout', 'TCPWRAP']))
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
