/**
 * What depends on nothing but the language, inside a real browser: the pure suites as they are, half of them in a page and half in a worker of it, and
 * the virtual world, whose histories must be those of Node to the last event. Files that are left out stand in `inside/left-out.ts`, with the reason.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../package/fixture.js'
import { withChromium } from './chromium.js'
import { allFiles, bundleInside, files, placeOf } from './inside/bundle.js'
import { leftOut, long } from './inside/left-out.js'
import { type Histories, histories, historyOf } from './inside/world.js'
import { drivenAndSite } from './setting.js'

/** What came of one file. */
interface Outcome {
  readonly passed: number
  readonly skipped: number
  readonly failures: readonly string[]
  readonly milliseconds: number
}

const places = ['page', 'worker'] as const
/** Seeds of the virtual world in each place: each is run in Node as well. */
const seeds = process.env['MQWIRE_LONG'] === undefined ? 50 : 500

describe('what is left out', () => {
  it('is all that a browser cannot load: the rest can be bundled', {
    timeout: 60_000,
  }, async () => {
    expect([...(await bundleInside()).keys()].sort()).toEqual([
      'features.js',
      'page.js',
      'worker.js',
    ])
  })

  it('is there, and has a reason', () => {
    for (const name of [...Object.keys(leftOut), ...long]) expect(allFiles).toContain(name)
    expect(long.filter((name) => name in leftOut && typeof leftOut[name] === 'string')).toEqual([])
    // The runner in the browser looks for the titles of the files that it runs, which are not the long ones.
    const titles = long.flatMap((name) =>
      typeof leftOut[name] === 'object'
        ? Object.keys(leftOut[name]).map((title) => ({ name, title }))
        : [],
    )
    expect(
      titles.filter(
        ({ name, title }) => !readFileSync(path.join(root, 'test', name), 'utf8').includes(title),
      ),
    ).toEqual([])
    expect(files.length).toBeGreaterThan(allFiles.length / 2)
    // A word that the search for secrets on the console knows.
    expect(long).toContain('unit/client/secrets-canary.test.ts')
  })
})

withChromium(() => {
  const setting = drivenAndSite()
  let page: Page
  beforeAll(async () => {
    page = await setting.browser.newPage()
    await page.goto(`${setting.site.origin}/inside/page.html`)
    await page.waitForFunction('globalThis.inside !== undefined')
  })

  const call = <T>(place: (typeof places)[number], name: string, ...given: unknown[]): Promise<T> =>
    page.evaluate(`inside.${place}.${name}(...${JSON.stringify(given)})`)

  describe('the pure suites in a page and in a worker of it, half of the files in each', () => {
    const outcomes = new Map<string, Promise<Outcome>>()
    const since = performance.now()
    let passed = 0
    let skipped = 0
    const times: [name: string, milliseconds: number][] = []
    beforeAll(() => {
      for (const place of places) {
        let before: Promise<unknown> = Promise.resolve()
        for (const file of files.filter((name) => placeOf(name) === place)) {
          const outcome = before.then(() => call<Outcome>(place, 'runFile', file))
          before = outcome.catch(() => undefined)
          outcomes.set(file, outcome)
        }
      }
    })
    afterAll(() => {
      const rest = allFiles.length - files.length
      const seconds = ((performance.now() - since) / 1000).toFixed(1)
      console.log(
        `inside Chromium: ${passed} tests of ${files.length} files, ${skipped} tests and ${rest} files left out, ${seconds} s`,
      )
      const slowest = times.sort(([, one], [, other]) => other - one).slice(0, 5)
      console.log(
        `the slowest: ${slowest.map(([name, milliseconds]) => `${name} ${Math.round(milliseconds)} ms`).join(', ')}`,
      )
    })

    it.each(files)('%s', { timeout: 300_000 }, async (name) => {
      const outcome = await outcomes.get(name)
      passed += outcome?.passed ?? 0
      skipped += outcome?.skipped ?? 0
      times.push([name, outcome?.milliseconds ?? 0])
      expect(outcome?.failures).toEqual([])
      expect(outcome?.passed).toBeGreaterThan(0)
    })
  })

  describe('the virtual world in a page and in a worker of it', () => {
    it(`${2 * seeds} seeds: no finding, and the very histories that Node has`, {
      timeout: 300_000,
    }, async () => {
      const since = performance.now()
      const inside = await Promise.all(
        places.map((place, first) => call<Histories>(place, 'histories', first + 1, seeds, 2)),
      )
      const seconds = ((performance.now() - since) / 1000).toFixed(1)
      for (const [first, { digests, findings, events }] of inside.entries()) {
        const here = await histories(first + 1, seeds, 2)
        expect(findings).toEqual([])
        const differing = digests.findIndex((digest, index) => digest !== here.digests[index])
        if (differing >= 0) {
          const seed = first + 1 + 2 * differing
          expect(await call(places[first] ?? 'page', 'historyOf', seed), `seed ${seed}`).toEqual(
            await historyOf(seed),
          )
        }
        expect(digests).toEqual(here.digests)
        expect(events).toBe(here.events)
        expect(events).toBeGreaterThan(seeds * 20)
      }
      console.log(`the virtual world inside Chromium: ${2 * seeds} seeds, ${seconds} s`)
    })
  })
})
