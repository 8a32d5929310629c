/**
 * What a reader meets where the package is published: its page, with links and pictures that are there, and the addresses that package.json gives.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { entries, packed, requireDist } from './fixture.js'
import { addressesOf, anchorsOf, deadAddresses } from './links.js'

let files: readonly string[] = []
let folder = ''
const textOf = (name: string): string => readFileSync(path.join(folder, name), 'utf8')

beforeAll(async () => {
  await requireDist()
  const made = await packed()
  files = made.files
  folder = path.join(made.folder, 'node_modules', 'mqwire')
})

describe('the package page', () => {
  it('says how to install it before anything else', () => {
    const screen = textOf('README.md').split('\n').slice(0, 16)
    expect(screen).toContain('npm install mqwire')
  })

  it('has no dead link, picture or anchor, nor has any other page of the tarball', () => {
    const pages = files.filter((name) => name.endsWith('.md'))
    expect(pages).toEqual(
      expect.arrayContaining([
        'README.md',
        'SECURITY.md',
        'docs/reference.md',
        'docs/from-mqttjs.md',
      ]),
    )
    expect(
      pages.flatMap((name) =>
        deadAddresses(name, files, textOf).map((address) => `${name}: ${address}`),
      ),
    ).toEqual([])
    expect(addressesOf(textOf('README.md')).length).toBeGreaterThan(10)
  })

  it('names every entry of the package', () => {
    const readme = textOf('README.md')
    const transports = readme.split('\n').find((line) => line.includes('mqwire/transport/…')) ?? ''
    const isNamed = (entry: string): boolean =>
      readme.includes(`\`${entry}\``) ||
      (entry.startsWith('mqwire/transport/') && transports.includes(`\`${path.basename(entry)}\``))
    expect(entries.filter((entry) => !isNamed(entry))).toEqual([])
  })

  it.each([
    ['How do I reconnect?', 'docs/reconnecting.md', 'reconnects automatically'],
    [
      'Why do messages arrive twice?',
      'docs/reconnecting.md#why-messages-arrive-twice',
      'at least once',
    ],
    ['How do I bound memory?', 'docs/receiving.md#bounding-memory', 'memoryBudget'],
    ['How do I test my program?', 'docs/testing.md', 'VirtualWorld'],
    ['How do I come from MQTT.js?', 'docs/from-mqttjs.md', 'const client = mqtt.connect'],
  ])('answers "%s" one click away, and in the index of the guides', (question, address, answer) => {
    expect(textOf('README.md')).toContain(`[${question}](${address})`)
    expect(textOf('docs/README.md')).toContain(`[${question}](${address.replace('docs/', '')})`)
    const [page = '', anchor] = address.split('#')
    const text = textOf(page)
    const section =
      anchor === undefined
        ? text
        : text.slice(text.search(new RegExp(`^#+ ${anchor.replaceAll('-', '.')}$`, 'im')))
    expect(section.slice(0, 2500)).toContain(answer)
  })

  it('leads to the documents and programs that came along, which are all of those in the tarball', () => {
    const linked = new Set(
      files
        .filter((name) => name.endsWith('.md'))
        .flatMap((name) => addressesOf(textOf(name)).map((to) => resolved(name, to))),
    )
    const alone = files.filter(
      (name) =>
        /^(?:docs|examples)\//.test(name) &&
        ![...linked].some((to) => name === to || name.startsWith(`${to}/`)),
    )
    expect(alone).toEqual([])
  })
})

const resolved = (from: string, to: string): string =>
  path.posix.join(path.posix.dirname(from), to.split('#')[0] ?? '')

describe('package.json', () => {
  it('names a home, a repository and a place for bugs, by https, of the project itself', () => {
    const { homepage, repository, bugs } = packageJson
    expect(repository.type).toBe('git')
    expect(repository.url).toMatch(/^git\+https:.*\.git$/)
    for (const address of [homepage, repository.url.slice('git+'.length), bugs.url]) {
      const { protocol, hostname, username, search } = new URL(address)
      expect({ protocol, username, search }).toEqual({
        protocol: 'https:',
        username: '',
        search: '',
      })
      expect(hostname.split('.')[0]).toBe('mqwire')
    }
  })
})

describe('the checker of links', () => {
  it('finds addresses of links and pictures, in Markdown and HTML, and none in code', () => {
    const text =
      '[a](b.md) ![c](d.png "e") <img src="f.png"> <source srcset="g.png 2x"> `[h](i)`\n```ts\n[j](k)\n```\n[l](<m n.md>) [o]: p\n\n[q]: r.md'
    expect(addressesOf(text)).toEqual(['b.md', 'd.png', 'm n.md', 'f.png', 'g.png', 'r.md'])
  })

  it('knows the anchors of headings as readers see them, and those that are set', () => {
    const text =
      '# One `two`, three\n## Same\n## Same\n<a id="set"></a>\n```sh\n# no heading\n```\n'
    expect(anchorsOf(text)).toEqual(['one-two-three', 'same', 'same-1', 'set'])
  })

  it('objects to what is not in the tarball, to anchors that are not there, and to what is not https', () => {
    const pages: Readonly<Record<string, string>> = {
      'README.md':
        '# Top\n[a](docs/a.md) [b](docs/a.md#top) [c](docs) [d](#top) [e](https://x.example) ![f](docs/f.png) [g](docs/a.md#gone) [h](#gone) [i](http://x.example) [j](../out.md) [k](/docs/a.md)',
      'docs/a.md': '# Top\n[r](../README.md#top) [s](b.md)',
    }
    const list = Object.keys(pages)
    const dead = (name: string): string[] => deadAddresses(name, list, (page) => pages[page] ?? '')
    expect(dead('README.md')).toEqual([
      'docs/f.png',
      'docs/a.md#gone',
      '#gone',
      'http://x.example',
      '../out.md',
      '/docs/a.md',
    ])
    expect(dead('docs/a.md')).toEqual(['b.md'])
  })
})
