/** What becomes of pages on their way to the documentation site: names, links, programs, anchors. The site itself is built and used by `site.suite.ts`. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { pages, root } from './fixture.js'

/** What `.ci/docs-pages.mjs` offers. */
interface Pages {
  readonly tables: readonly string[]
  pageOf(file: string): string | undefined
  assetOf(file: string): string | undefined
  textFor(file: string, text: string): string
  settings(given: { base: string; outDir: string; references: readonly string[] }): {
    themeConfig: { sidebar: { items: { link: string }[] }[] }
  }
}

const program = (await import(pathToFileURL(path.join(root, '.ci/docs-pages.mjs')).href)) as Pages
const { tables, pageOf, assetOf, textFor, settings } = program

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

  it('is refused when it leads to what the site has not', () => {
    expect(() => textFor('docs/events.md', '[a](../src/errors.ts)')).toThrow(
      'docs/events.md leads to ../src/errors.ts, which the site has not',
    )
  })
})

it('the navigation: has every page that people write, and nothing that is not there', () => {
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
