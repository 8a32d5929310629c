/** What becomes of pages on their way to the documentation site: names, links, programs, anchors. The site itself is built and used by `site.suite.ts`. */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { entries, root } from './fixture.js'
import { anchorsOf } from './links.js'
import { pages } from './pages.js'

/** What `.ci/docs-pages.mjs` offers. */
interface Pages {
  readonly tables: readonly string[]
  pageOf(file: string): string | undefined
  assetOf(file: string): string | undefined
  slugOf(heading: string): string
  textFor(file: string, text: string): string
  settings(given: { base: string; outDir: string; references: readonly string[] }): {
    themeConfig: { sidebar: { items: { link: string }[] }[] }
  }
}

const program = (await import(pathToFileURL(path.join(root, '.ci/docs-pages.mjs')).href)) as Pages
const { tables, pageOf, assetOf, slugOf, textFor, settings } = program

describe('a page of the site', () => {
  it.each([
    ['README.md', 'index'],
    ['docs/connecting.md', 'connecting'],
    ['docs/README.md', 'guides'],
    ['docs/reference/transport/t.md', 'reference/transport/t'],
    ['examples/testing/meter.test.js', 'programs/meter-test'],
    ['bench/RESULTS.md', 'proofs/bench'],
    ['dist/client/node.js', undefined],
    ['examples/demo/main.js', undefined],
  ])('%s is %s', (file, page) => expect(pageOf(file)).toBe(page))

  it('of a table of proofs is there', () => {
    expect(tables.length).toBe(4)
    expect(tables.filter((file) => !existsSync(path.join(root, file)))).toEqual([])
  })

  it('has links that fit the site, outside code', () => {
    const text =
      'See [a](errors.md#codes), [b](../README.md), [c](#here), [d](https://x.example/y.md), `[e](f.md)`.\n```ts\n[g](h.md)\n```\n'
    expect(textFor('docs/events.md', text)).toBe(
      'See [a](/errors#codes), [b](/), [c](#here), [d](https://x.example/y.md), `[e](f.md)`.\n```ts\n[g](h.md)\n```\n',
    )
    expect(
      textFor('README.md', '<img src="examples/screenshots/dashboard-light.png" alt="x">'),
    ).toBe('<img src="/screenshots/dashboard-light.png" alt="x">')
    expect(assetOf('examples/screenshots/dashboard-light.png')).toBe(
      'screenshots/dashboard-light.png',
    )
  })

  it('leads to the tables of proofs where it names them', () => {
    expect(textFor('docs/proofs.md', 'in `bench/RESULTS.md`, not `bench/main.js`')).toBe(
      'in [`bench/RESULTS.md`](/proofs/bench), not `bench/main.js`',
    )
  })

  it('leads from the index of the reference to each entry of the package', () => {
    const index = textFor(
      'docs/reference.md',
      readFileSync(path.join(root, 'docs/reference.md'), 'utf8'),
    )
    const addresses = entries.map(
      (entry) => `[\`${entry}\`](/reference/${entry.replace(/^mqwire\/(?=.)/, '')})`,
    )
    expect(addresses.filter((address) => !index.includes(address))).toEqual([])
    expect(textFor('docs/wire.md', '`mqwire/wire`')).toBe('`mqwire/wire`')
  })

  it('shows a program as it is', () => {
    expect(textFor('examples/small/basic.js', 'go()\n')).toBe('# basic.js\n\n```js\ngo()\n```\n')
  })

  it('is refused when it leads to what the site has not', () => {
    expect(() => textFor('docs/events.md', '[a](../src/errors.ts)')).toThrow(
      'docs/events.md leads to ../src/errors.ts, which the site has not',
    )
  })

  it('has anchors as they are where there is no site', () => {
    for (const heading of [
      'MQTT 3.1.1',
      'What `disconnect()` does',
      'Why messages arrive twice',
      'Size',
      'Events, counters and logs',
    ])
      expect(anchorsOf(`# ${heading}\n`)).toEqual([slugOf(heading)])
  })
})

describe('the navigation', () => {
  it('has every page that people write, and nothing that is not there', () => {
    const { sidebar } = settings({
      base: '/',
      outDir: 'x',
      references: ['reference/m'],
    }).themeConfig
    const links = sidebar.flatMap(({ items }) =>
      items.map(({ link }) => link.replace(/^\//, '').replace(/(^|\/)$/, '$1index')),
    )
    const there = [...pages, 'SECURITY.md', 'docs/reference/m.md', ...tables].map(pageOf)
    expect(links.sort()).toEqual(there.sort())
  })
})
