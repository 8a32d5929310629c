/**
 * Real browsers for the tests: Debian's Chromium, either as the driver starts it, or as a person would, with nothing switched off.
 *
 * Whatever is opened is closed by whoever opened it. Nothing of mqwire is used here.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { expect, it } from 'vitest'
import { within } from '../real/waiting.js'

const executablePath = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((file) => existsSync(file))

/** Defines tests that need a browser. Where there is none they fail in CI; elsewhere the reason is printed and they are left out. */
export function withChromium(define: () => void): void {
  if (executablePath !== undefined) return define()
  console.warn('The browser tests are left out: chromium not found')
  it('in a browser: chromium not found', () => expect(process.env['CI']).toBeUndefined())
}

/** Nothing that asks the network, and no process sandbox: tests run as root. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
]

/** A browser in the hands of the driver, which keeps every page awake and in the foreground. */
export function driven(): Promise<Browser> {
  return chromium.launch({ executablePath: executablePath ?? 'chromium', args: flags })
}

/** A browser without the driver's settings: pages that are not seen are hidden and held back, and those that are left are kept for going back. */
export class PlainBrowser {
  readonly context: BrowserContext
  readonly #browser: Browser
  readonly #child: ChildProcess
  readonly #folder: string

  private constructor(browser: Browser, child: ChildProcess, folder: string) {
    const [context] = browser.contexts()
    if (context === undefined) throw new Error('the browser has no context')
    this.context = context
    this.#browser = browser
    this.#child = child
    this.#folder = folder
  }

  static async start(more: readonly string[] = []): Promise<PlainBrowser> {
    const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-browser-'))
    const own = ['--headless=new', '--remote-debugging-port=0', `--user-data-dir=${folder}`]
    const child = spawn(executablePath ?? 'chromium', [...flags, ...own, ...more, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    process.once('exit', () => child.kill('SIGKILL'))
    const address = await within(debuggingAddress(child), 'the browser getting ready', 30_000)
    return new PlainBrowser(
      await chromium.connectOverCDP(address, { noDefaults: true }),
      child,
      folder,
    )
  }

  async stop(): Promise<void> {
    await this.#browser.close()
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    if (this.#child.exitCode === null && this.#child.kill('SIGTERM')) await gone
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

// It prints where it listens.
function debuggingAddress(child: ChildProcess): Promise<string> {
  let printed = ''
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the browser ended with ${code}: ${printed}`)))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const address = /DevTools listening on (ws:\S+)/.exec(printed)?.[1]
      if (address !== undefined) resolve(address)
    })
  })
}
