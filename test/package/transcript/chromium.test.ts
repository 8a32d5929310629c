/** What stands in the console of a page: programs that are broken in many ways, and `console.log` of everything that a program gets into its hands. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import type { Browser, CDPSession } from 'playwright-core'
import { beforeAll, it } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import { driven, withChromium } from '../../browser/chromium.js'
import { within } from '../../real/waiting.js'
import { closed, listening } from '../../support/servers.js'
import { packed, requireDist, root } from '../fixture.js'
import { inPage } from './broken.js'
import { type Servers, startServers } from './in-node.js'
import { expectHeads, expectKept, expectRules } from './kept.js'

interface Shown {
  readonly type: string
  readonly subtype?: string
  readonly value?: unknown
  readonly description?: string
  readonly objectId?: string
  readonly preview?: { readonly overflow: boolean; readonly properties: readonly Field[] }
}

/** A field: of a preview, where `value` is text, or of an object. */
interface Field {
  readonly name: string
  readonly type: string
  readonly value?: string
}

const importMap = {
  imports: {
    mqwire: '/node_modules/mqwire/dist/client/browser.js',
    'mqwire/wire': '/node_modules/mqwire/dist/wire/index.js',
  },
}

const page = (
  name: string,
): string => `<!doctype html><html lang="en"><meta charset="utf-8"><title>${name}</title><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify(importMap)}</script>
<script type="module">
const end = () => setTimeout(() => console.debug('the end'))
addEventListener('unhandledrejection', end)
import('/${name}').then(end)
</script></html>`

interface Pages {
  /** What a program printed, with everything masked that differs from one run to the next. */
  printed(name: string, code: string): Promise<string>
  stop(): Promise<void>
}

/** Serves them. The broker's doors of TCP become those of WebSocket. */
async function startPages(browser: Browser, servers: Servers): Promise<Pages> {
  const { folder } = await packed()
  const programs = new Map<string, string>()
  const server = createServer(async ({ url = '/' }, response) => {
    const name = new URL(url, 'http://localhost').pathname.slice(1)
    try {
      const isPage = name.endsWith('.html')
      const body = isPage
        ? page(name.replace('.html', '.js'))
        : (programs.get(name) ?? (await readFile(path.join(folder, name))))
      const headers = {
        'content-type': isPage ? 'text/html' : 'text/javascript',
        'cache-control': 'max-age=3600',
      }
      response.writeHead(200, headers).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  const origin = `http://127.0.0.1:${await listening(server)}`
  const context = await browser.newContext()
  const tab = await context.newPage()
  const console = new Console(await context.newCDPSession(tab))
  await console.start()
  return {
    async printed(name, code) {
      programs.set(name, servers.real(overWebSocket(code)))
      const text = await console.from(() => tab.goto(`${origin}/${name.replace('.js', '.html')}`))
      return masked(servers.masked(text.replaceAll(origin, 'http://127.0.0.1:8000')))
    },
    async stop() {
      await context.close()
      server.closeAllConnections()
      await closed(server)
    },
  }
}

const doors: Readonly<Record<string, string>> = { 1883: '8083', 1884: '8084', 1885: '8086' }

function overWebSocket(code: string): string {
  return code.replace(
    /mqtt:\/\/(\S+@)?127\.0\.0\.1:(\d+)/g,
    (_, login = '', port: string) => `ws://${login}127.0.0.1:${doors[port] ?? port}/mqtt`,
  )
}

function masked(text: string): string {
  // The second is of the browser's own words.
  return text
    .replace(/(subscriptionIdentifiers?:? (?:\[ ?)?)\d+/g, '$1…')
    .replace(/(WebSocket connection to '\S+' failed:).*/g, '$1 …')
}

class Console {
  #lines: Promise<string>[] = []
  #ended = deferred<void>()
  readonly #session: CDPSession

  constructor(session: CDPSession) {
    this.#session = session
    session.on('Runtime.consoleAPICalled', ({ type, args }) => {
      if (type === 'debug') this.#ended.resolve()
      else this.#say(...(args as readonly Shown[]))
    })
    session.on('Runtime.exceptionThrown', ({ exceptionDetails: { text, exception } }) =>
      this.#say({ type: 'string', value: text }, exception as Shown),
    )
    session.on('Log.entryAdded', ({ entry: { level, text } }) =>
      this.#say({ type: 'string', value: `[${level}] ${text}` }),
    )
  }

  async start(): Promise<void> {
    await this.#session.send('Runtime.enable')
    await this.#session.send('Log.enable')
  }

  /** What is said from now on until a program says that it is at its end. */
  async from(open: () => Promise<unknown>): Promise<string> {
    this.#lines = []
    this.#ended = deferred()
    await open()
    await within(this.#ended.promise, 'the end of a program')
    return (await Promise.all(this.#lines)).join('\n')
  }

  #say(...values: readonly Shown[]): void {
    this.#lines.push(
      Promise.all(values.map((value) => textOf(this.#session, value))).then((texts) =>
        texts.join(' '),
      ),
    )
  }
}

const most = 8

/** Of an object its own enumerable fields; what is private stands among them in a console too, with a `#` in front. */
async function textOf(
  session: CDPSession,
  { type, subtype, value, description = '', objectId, preview }: Shown,
): Promise<string> {
  if (type === 'string') return String(value)
  if (preview === undefined || objectId === undefined || subtype === 'error')
    return description || String(value)
  if (subtype === 'array')
    return `${description} [${preview.properties.map(({ value: text }) => text).join(', ')}]`
  const { result } = await session.send('Runtime.getProperties', { objectId, ownProperties: true })
  const fields = result
    .filter(({ enumerable }) => enumerable)
    .map(({ name, value: field }) => `${name}: ${fieldOf(field as Shown | undefined)}`)
  return `${description} { ${[...fields.slice(0, most), ...(fields.length > most ? ['…'] : [])].join(', ')} }`
}

// What has a getter is not asked for before somebody clicks.
function fieldOf(field: Shown | undefined): string {
  if (field === undefined) return '(…)'
  return field.type === 'string' ? `'${field.value}'` : (field.description ?? String(field.value))
}

const source = (name: string) =>
  readFile(`${root}/test/package/transcript/programs/${name}.js`, 'utf8')

withChromium(() => {
  let browser: Browser
  let pages: Pages

  beforeAll(async () => {
    await requireDist()
    await packed()
    browser = await driven()
    const servers = await startServers()
    pages = await startPages(browser, servers)
    return async () => {
      await pages.stop()
      await browser.close()
      await servers.stop()
    }
  })

  it('is what is kept for the page of the README, and each line follows the rules', async () => {
    const transcript: [string, string][] = []
    for (const [index, { title, code }] of (await inPage()).entries())
      transcript.push([title, await pages.printed(`page-${index}.js`, code)])
    expectKept(
      transcript.map(([title, text], index) => [
        title,
        text.replaceAll(`page-${index}.js`, 'page.js'),
      ]),
    )
  }, 60_000)

  it('says the same of errors as Node, and each line follows the rules, those of objects too', async () => {
    expectHeads('calling', await pages.printed('calling.js', await source('calling')))
    expectRules([['objects', await pages.printed('objects.js', await source('objects'))]])
  }, 60_000)
})
