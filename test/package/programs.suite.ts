/**
 * Programs on the documentation site: each block that a page can run does so in Chromium, on the broker in memory, and nothing leaves the site; blocks
 * are edited, stopped and shared.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { faint, nameless, tooWide, unseenFocus } from '../browser/accessible.js'
import { driven, withChromium } from '../browser/chromium.js'
import { eventually } from '../real/waiting.js'
import { serveFolder } from '../support/servers.js'
import { blocksOf } from './code-blocks.js'
import { node, root } from './fixture.js'

const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-programs-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
const built = await node(['.ci/docs.mjs', '--out', folder], root, 400_000)

/** Pages with programs, and how many they have. */
const pages: [string, number][] = []
for (const name of await readdir(folder, { recursive: true })) {
  if (!name.endsWith('.html')) continue
  const text = await readFile(path.join(folder, name), 'utf8')
  const count = text.split('<run-program ').length - 1
  if (count > 0) pages.push([name, count])
}

it('the site is built, with programs that run and programs for Node', async () => {
  expect(built).toMatchObject({ code: 0 })
  expect(pages.reduce((sum, [, count]) => sum + count, 0)).toBeGreaterThan(60)
  expect(await readFile(path.join(folder, 'cloud.html'), 'utf8')).toContain('Node only')
})

withChromium(() => {
  let browser: Browser
  let page: Page
  let [origin, elsewhere] = ['', '']
  let stop = (): void => undefined
  /** What went wrong in pages, what the site does not have, and what is not of the site. */
  const wrong: string[] = []

  beforeAll(async () => {
    const served = await serveFolder(folder, undefined, (address) => wrong.push(address))
    const other = await serveFolder(folder, (address) => {
      wrong.push(`from elsewhere: ${address}`)
      return path.join(folder, 'index.html')
    })
    origin = served.origin
    elsewhere = other.origin
    stop = () => {
      served.stop()
      other.stop()
    }
    browser = await driven()
  })
  afterAll(async () => {
    await browser.close()
    stop()
    expect(wrong).toEqual([])
  })

  const open = async (
    address: string,
    settings: Parameters<Browser['newPage']>[0] = {},
  ): Promise<void> => {
    await page?.close()
    page = await browser.newPage(settings)
    page.on('pageerror', (error) => wrong.push(error.message))
    page.on('response', (response) => {
      if (!/^(?:blob|data):/.test(response.url()) && !response.url().startsWith(origin))
        wrong.push(response.url())
    })
    await page.goto(`${origin}/${address}`)
    await page.waitForFunction(() => customElements.get('run-program'))
  }
  /** A button by what stands on it; its name may go on with the place of the program. */
  const button = (inside: Locator, text: string): Locator =>
    inside.getByRole('button', { name: new RegExp(`^${text}(?:: |$)`) })
  const press = (inside: Locator, text: string): Promise<void> => button(inside, text).click()
  const reached = (program: Locator, state: string): Promise<unknown> =>
    eventually(
      async () => (await program.getAttribute('state')) === state,
      `a program that is ${state}`,
    )
  const output = (program: Locator): Promise<string> => program.getByRole('log').innerText()
  const write = async (text: string): Promise<void> => {
    await page.locator('.cm-content').focus()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(text)
  }
  const playground = async (hash = ''): Promise<Locator> => {
    await open(`playground.html${hash}`)
    await page.waitForSelector('.cm-content')
    return page.locator('run-playground')
  }

  it.each(pages)(
    '%s: %i programs end by themselves, or wait until they are stopped',
    async (name, count) => {
      await open(name)
      const programs = await page.locator('run-program').all()
      expect(programs).toHaveLength(count)
      const names = await page.$$eval('.program-bar button', (all) =>
        all.map((each) => `${each.ariaLabel}`),
      )
      expect(new Set(names).size).toBe(names.length)
      for (const program of programs) await press(program, 'Run')
      for (const program of programs) {
        if ((await program.getAttribute('ends')) !== null) await reached(program, 'ended')
        else
          await eventually(
            async () =>
              (await program.getAttribute('state')) !== 'running' ||
              (await button(program, 'Publish').isVisible()),
            'a program that waits',
          )
        const isWaiting = (await program.getAttribute('state')) === 'running'
        if (isWaiting) await press(program, 'Stop')
        await eventually(async () => (await program.getAttribute('state')) !== 'running', 'its end')
        expect(await program.getAttribute('state'), await output(program)).not.toBe('failed')
      }
    },
  )

  it('the README: prints in the page what it says', async () => {
    await open('index.html')
    const blocks = blocksOf(await readFile(path.join(root, 'README.md'), 'utf8'))
    expect(await page.locator('run-program').count()).toBe(blocks.length)
    for (const [index, { prints }] of blocks.entries()) {
      if (prints === undefined) continue
      const program = page.locator('run-program').nth(index)
      await press(program, 'Run')
      await reached(program, 'ended')
      expect(await output(program)).toBe(prints.trim())
    }
  })

  it('a block: is edited, runs again, takes a message from the reader, and is reset', async () => {
    await open('index.html')
    const program = page.locator('run-program').nth(1)
    await press(program, 'Edit')
    await page.waitForSelector('.cm-content')
    await write(
      "import { connect } from 'mqwire'\nconst client = await connect('wss://x.example')\nfor await (const { topic } of await client.subscribe('a/+/b')) console.log(topic as string)\n",
    )
    await page.keyboard.press('Control+Enter')
    await press(program, 'Publish')
    await eventually(async () => (await output(program)) === 'a/1/b', 'the message')
    await press(program, 'Stop')
    await reached(program, 'stopped')
    await press(program, 'Reset')
    expect(await page.locator('.cm-content').innerText()).toContain('plant/+/temperature')
  })

  it('the policy: refuses nothing that the site itself needs', async () => {
    const refused: string[] = []
    await open('index.html', { colorScheme: 'light' })
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) refused.push(message.text())
    })
    await page.reload()
    await page.locator('.VPNavBarSearch button').click()
    await page.locator('.VPLocalSearchBox input').fill('retained')
    await page.locator('.VPLocalSearchBox .result').first().waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.VPNavBarAppearance button').click()
    await page.locator('html.dark').waitFor()
    expect(refused).toEqual([])
  })

  it('a page that a link leads to: has programs that run, and leaving it ends them', async () => {
    await open('connecting.html')
    for (const name of ['Receiving', 'Performance']) {
      await page.locator('.VPSidebar').getByRole('link', { name, exact: true }).click()
      await page.waitForURL(`**/${name.toLowerCase()}.html`)
      const program = page.locator('run-program[runs]')
      await eventually(async () => (await program.count()) === 1, 'the page')
      await press(program, 'Run')
      await button(program, 'Publish').waitFor()
      expect(page.workers()).toHaveLength(1)
    }
  })

  it.each([
    [
      "import { connect } from 'mqwire'\nconst limit: number = -1\nawait connect('mqtt://x', { keepAlive: limit })",
      /^MqttError ERR_INVALID_OPTION: .*keepAlive.* \(line 3\)$/,
    ],
    ['throw new TypeError(`no`)', 'TypeError: no (line 1)'],
    ['const a = ;', /^SyntaxError: /],
    ["setTimeout(() => Promise.reject('later'), 10)", "Uncaught 'later'"],
    ["await fetch('ELSEWHERE')", /^TypeError: Failed to fetch/],
    ["import 'ELSEWHERE/a.js'", /^TypeError: /],
    ["await new FontFace('x', 'url(ELSEWHERE/leak)').load()", /^NetworkError: /],
    [
      "const worker = new Worker('ORIGIN/run/worker.js', { type: 'module' })\nawait new Promise((_, reject) => {\n  worker.onerror = () => reject(new Error('blocked'))\n})",
      'Error: blocked (line 3)',
    ],
    ['const n = 1\nnamespace A { export const x = n }', /^SyntaxError: Namespaces .* \(line 2\)$/],
    ['@sealed\nclass A {}', /^SyntaxError: Decorators are not supported here \(line 1\)$/],
    ['const a = <b>c</b>', /^SyntaxError: JSX is not supported here \(line 1\)$/],
    [
      "import { setTimeout } from 'node:timers/promises'\nawait setTimeout(1)",
      'TypeError: node:timers/promises is not there in a page: Node only (line 1)',
    ],
    ['throw Proxy.revocable({}, {}).proxy\n', /^Uncaught \{\}/],
  ])('a program that fails says why: %j', async (text, message) => {
    const program = await playground()
    await write(text.replace('ELSEWHERE', elsewhere).replace('ORIGIN', origin))
    await press(program, 'Run')
    await reached(program, 'failed')
    expect(await output(program)).toMatch(message)
  })

  it.each([
    [
      "#!/usr/bin/env node\nimport { connect as a } from /* c */ 'mqwire'\nconsole.log(typeof a, \"from 'mqwire'\", `import('mqwire')`)",
      "function from 'mqwire' import('mqwire')",
    ],
    [
      "for (const { connect } of [await import(/* c */ 'mqwire'), await import(`mqwire`)]) console.log(typeof connect)",
      'function\nfunction',
    ],
    [
      'const setTimeout = 1\nconst timer = setInterval(() => {}, 1e6).unref()\nconsole.log(setTimeout, typeof timer.ref)',
      '1 function',
    ],
    [
      "const { proxy, revoke } = Proxy.revocable({}, {})\nrevoke()\nconst error = Object.assign(new Error('x'), { name: Symbol('y') })\nconsole.log(proxy)\nconsole.error({ error })",
      '[a value that cannot be read]\n{ error: [a value that cannot be read] }',
    ],
    [
      "console.log('%d of %s%%: %j', 1, 'x', [2], 3)\nconsole.group('a')\nconsole.count()\nconsole.groupEnd()\nconsole.assert(false, 'b')\nconsole.log(new Array(1e9), new URL('http://x/'))",
      "1 of x%: [2] 3\na\n  default: 1\nAssertion failed: b\n[ <1000000000 empty items> ] URL { href: 'http://x/' }",
    ],
    [
      "console.log(typeof postMessage)\ndispatchEvent(new MessageEvent('message', { data: { program: 'console.log(1)' } }))",
      'undefined',
    ],
  ])('a program that ends has printed: %j', async (text, printed) => {
    const program = await playground()
    await write(text)
    await press(program, 'Run')
    await reached(program, 'ended')
    expect(await output(program)).toBe(printed)
  })

  it('a program that prints without end leaves the page at work', async () => {
    const program = await playground()
    await write(
      "for (let n = 0; n < 1200; n++) console.log('\\n'.repeat(10_000))\nthrow new Error('x')",
    )
    const began = performance.now()
    await press(program, 'Run')
    await reached(program, 'failed')
    const text = await output(program)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(text).toMatch(/What comes after this is not shown: .*\nError: x \(line 2\)$/)
    expect(text.length).toBeLessThan(250_000)
  })

  it('an endless loop is stopped, and the page goes on', async () => {
    const program = await playground()
    await write('console.log(1)\nfor (;;) {}')
    await press(program, 'Run')
    await eventually(async () => (await output(program)) === '1', 'its output')
    await press(program, 'Stop')
    await reached(program, 'stopped')
  })

  it('the playground: is shared by its address, runs nothing by itself, and survives a damaged address', async () => {
    const text = 'const grüße: string = "日本"\nconsole.log(grüße)\n'
    const first = await playground()
    await write(text)
    await press(first, 'Share')
    await eventually(() => page.url().includes('#code='), 'the address')
    const { hash } = new URL(page.url())

    const second = await playground(hash)
    const content = (): Promise<string> => page.locator('.cm-content').innerText()
    await eventually(async () => (await content()).includes('grüße'), 'the program')
    expect(await second.getAttribute('state')).toBe(null)
    await press(second, 'Run')
    await reached(second, 'ended')
    expect(await output(second)).toBe('日本')

    const menu = second.getByRole('combobox')
    const chosen = (): Promise<string> => menu.evaluate((each: HTMLSelectElement) => each.value)
    expect(await chosen()).toBe('Shared program')
    await menu.selectOption('The codec')
    expect([await chosen(), new URL(page.url()).hash]).toEqual(['The codec', ''])

    const third = await playground(`${hash.slice(0, 20)}!`)
    await third.getByText('The address holds no program that can be read.').waitFor()
    expect(await content()).toContain('rooms/+')
    await write(`// ${'0123456789'.repeat(10_000)}`)
    await press(third, 'Share')
    await third.getByText('No address can hold the program').waitFor()

    await third.getByRole('combobox').selectOption('The codec')
    expect(await content()).toContain('mqwire/wire')
  })

  it.each(
    [1280, 768, 390].flatMap((width) =>
      (['light', 'dark'] as const).map((mode) => [width, mode] as const),
    ),
  )('is for everyone: %i pixels, %s', async (width, colorScheme) => {
    for (const address of ['programs/basic.html', 'playground.html']) {
      await open(address, { colorScheme, viewport: { width, height: 900 } })
      const program = page.locator('run-program, run-playground').first()
      if (address !== 'playground.html') await press(program, 'Edit')
      await page.waitForSelector('.cm-content')
      await press(program, 'Run')
      await reached(program, 'ended')
      expect(await nameless(page)).toEqual([])
      expect(await faint(page)).toEqual([])
      expect(await tooWide(page)).toBe(0)
      const clipped = await page.$$eval('.vp-doc pre', (all) =>
        all.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent),
      )
      expect(clipped).toEqual([])
      await button(program, 'Run').focus()
      expect(await unseenFocus(page, 3)).toEqual([])
    }
  })
})
