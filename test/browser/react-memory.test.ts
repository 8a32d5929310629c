/** What the hooks of mqwire/react show: errors, outages, other credentials, and how often they render. Broker and components share a page. */
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../package/fixture.js'
import { withChromium } from './chromium.js'
import { drivenAndSite } from './setting.js'

withChromium(() => {
  const setting = drivenAndSite()
  let page: Page
  const complaints: string[] = []
  beforeAll(async () => {
    const { outputFiles } = await build({
      absWorkingDir: root,
      entryPoints: ['test/browser/programs/react-memory.jsx'],
      bundle: true,
      write: false,
      format: 'iife',
      jsx: 'automatic',
      define: { 'process.env.NODE_ENV': '"development"' },
      logLevel: 'silent',
    })
    page = await setting.browser.newPage()
    await page.goto(`${setting.site.origin}/other`)
    await page.addScriptTag({ content: outputFiles[0]?.text ?? '' })
    page.on('pageerror', (error) => complaints.push(error.message))
    // What a server logs of its handlers is asked for here.
    const handled = 'MQWIRE_HANDLER_FAILED'
    page.on(
      'console',
      (message) =>
        message.type() === 'error' &&
        !message.text().startsWith(handled) &&
        complaints.push(message.text()),
    )
    return () => page.close()
  })
  const run = (scenario: string): Promise<unknown> => page.evaluate(`react.${scenario}()`)

  describe('the hooks', () => {
    it('another password is another client, and another key of the provider another try', async () => {
      await run('password')
      await run('credentials')
    })

    it('latest values render once a frame at most', async () => {
      const { renders, frames } = (await run('renders')) as { renders: number; frames: number }
      expect(renders).toBeGreaterThan(0)
      expect(renders).toBeLessThanOrEqual(frames + 1)
    })

    it('2,000 rows that select their own value of one map: 20 messages are 20 renders', async () => {
      expect(await run('rows')).toEqual({ renders: 20, asked: 0 })
    })

    it('a selection that is made each time renders where `equal` says so', async () => {
      expect(await run('equal')).toBe(2)
    })

    it('what is not enabled subscribes to nothing and keeps what it showed', () => run('enabled'))

    it('a call with all its arguments is made by itself, once for all that ask the same', () =>
      run('call'))
    it('calls with values of any kind share an answer where they hold the same, and only there', () =>
      run('objects'))
    it('calls by hand: the last one is shown, each promise has its own answer, and what is in flight ends with the component', () =>
      run('byHand'))
    it('a call in an effect, also of a component inside', () => run('effects'))
    it('streams by themselves and by hand: the last answers, ended by `stop` and with the component', () =>
      run('streams'))
    it('messages of a filter and of a channel, and functions that publish and stay the same', () =>
      run('messages'))
    it('nothing of that is an unhandled rejection, or a warning of React', () =>
      expect(complaints).toEqual([]))

    it('show why a subscription ended, and who mounts later gets a new one, for all', () =>
      run('refused'))
    it('refuse options that are wrong, each by name', () => run('wrong'))
    it('let the client go where a parameter throws', () => run('thrown'))
    it('refuse a parameter that is not known, also where another component shows all topics', () =>
      run('unknown'))
    it('show values as stale during an outage', () => run('outage'))
  })
})
