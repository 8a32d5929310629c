/** Typed topics in a real browser: the example with its table of latest values, and what real libraries make of payloads, through mosquitto. */
import { build } from 'esbuild'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { Program } from '../package/examples/program.js'
import { requireDist, root } from '../package/fixture.js'
import { startMosquitto, withMosquitto } from '../real/brokers.js'
import { faint, nameless } from './accessible.js'
import { driven, withChromium } from './chromium.js'

withChromium(() => {
  let browser: Browser
  beforeAll(async () => {
    await requireDist()
    browser = await driven()
    return () => browser.close()
  })

  it('the example shows the latest readings, opens windows, and streams a history', async () => {
    const program = new Program('typed/serve.js', ['--port', '0'], '', {}, 60_000)
    await program.prints('The greenhouses are at ')
    const page = await browser.newPage()
    try {
      await page.goto(/http\S+/.exec(program.output)?.[0] ?? '')
      await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 3)
      expect(await page.locator('tbody td:first-child').allTextContents()).toEqual(['1', '2', '3'])
      expect(await page.locator('tbody tr:first-child td:nth-child(2)').textContent()).toMatch(
        /^\d+(\.\d)? °C$/,
      )
      await page.locator('tbody tr:first-child button').first().click()
      await page.waitForFunction(() =>
        document.querySelector('output')?.textContent?.startsWith('House 1: windows were at'),
      )
      await page.locator('tbody tr:nth-child(2) button').nth(1).click()
      await page.waitForFunction(() =>
        /^House 2: \d+ readings/.test(document.querySelector('output')?.textContent ?? ''),
      )
      expect(await nameless(page)).toEqual([])
      expect(await faint(page)).toEqual([])
    } finally {
      await page.close()
      program.signal('SIGTERM')
      expect((await program.ending).code).toBe(0)
    }
  }, 60_000)

  it('the example and that of React serve their pages side by side', async () => {
    const programs: Program[] = []
    const addresses: string[] = []
    try {
      for (const file of ['react/serve.js', 'typed/serve.js']) {
        const program = new Program(file, ['--port', '0'], '', {}, 60_000)
        programs.push(program)
        await program.prints('(Ctrl-C stops)')
        addresses.push(/http:\S+/.exec(program.output)?.[0] ?? '')
      }
      // Opened behind the start of both, so that each page needs what its own server compiled.
      for (const [index, text] of ['Client: connected', 'Last minute'].entries()) {
        const page = await browser.newPage()
        await page.goto(addresses[index] ?? '')
        await page.getByText(text).first().waitFor({ timeout: 15_000 })
        await page.close()
      }
    } finally {
      for (const program of programs) program.signal('SIGTERM')
      for (const { ending } of programs) expect((await ending).code).toBe(0)
    }
  }, 60_000)

  withMosquitto(['WebSocket'], () =>
    describe('real libraries in a page', () => {
      it('check, make and keep as in Node', async () => {
        const broker = await startMosquitto()
        const page = await browser.newPage()
        try {
          const { outputFiles } = await build({
            absWorkingDir: root,
            entryPoints: ['test/browser/programs/typed.ts'],
            bundle: true,
            write: false,
            format: 'iife',
            platform: 'browser',
            target: 'es2022',
            logLevel: 'silent',
          })
          await page.addScriptTag({ content: outputFiles[0]?.text ?? '' })
          const lines = await page.evaluate(
            (url) =>
              (globalThis as unknown as { tried(url: string): Promise<string[]> }).tried(url),
            broker.urls.WebSocket ?? '',
          )
          expect(lines).toEqual([
            'msgpackr: 1001 unchanged',
            'cbor-x: 1001 unchanged',
            'protobuf: 1001 unchanged',
            'a view: 1001 changed',
            'zod: 4 1 ERR_INVALID_PAYLOAD',
            'valibot: 4 1 ERR_INVALID_PAYLOAD',
            'arktype: 4 1 ERR_INVALID_PAYLOAD',
          ])
        } finally {
          await page.close()
          await broker.stop()
        }
      }, 60_000)
    }),
  )
})
