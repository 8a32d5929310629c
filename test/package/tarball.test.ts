/** The package as it is published: what the tarball holds, that each entry can be imported and required without any effect, and what its page shows. */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import {
  entries,
  linkPeers,
  node,
  type Packed,
  packageExports,
  packed,
  project,
  removeProjects,
  requireDist,
  root,
} from './fixture.js'

/** The text without fenced blocks and code spans. */
function prose(text: string): string {
  return text.replace(/^(```|~~~).*\n[\s\S]*?^\1.*$/gm, '').replace(/(`+)[^`]*?\1/g, '')
}

/** Addresses of links and pictures: those of Markdown, of HTML, and of reference definitions, in this order. */
function addressesOf(text: string): string[] {
  const bare = prose(text)
  const inline = [...bare.matchAll(/\]\((?:<([^>]*)>|([^)\s]+))[^)]*\)/g)].map(
    ([, angled, plain]) => angled ?? plain ?? '',
  )
  const html = [...bare.matchAll(/\b(?:href|src|srcset)="([^"\s]*)[^"]*"/g)].map(
    ([, address = '']) => address,
  )
  const defined = [...bare.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)].map(([, address = '']) => address)
  return [...inline, ...html, ...defined]
}

/** Anchors of a page: of its headings, as the usual hosts make them, and those that are set by `id`. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>()
  const unfenced = text.replace(/^(```|~~~).*\n[\s\S]*?^\1.*$/gm, '')
  const headings = [...unfenced.matchAll(/^#{1,6} +(.*?)(?: +#+)?$/gm)].map(([, heading = '']) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[^>]*>/g, '')
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
  return [...headings, ...[...unfenced.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)]
}

/** The addresses of a page that lead nowhere: to no published file or folder of files, to no anchor, or over a protocol other than https. */
function deadAddresses(
  name: string,
  files: readonly string[],
  textOf: (name: string) => string,
): string[] {
  return addressesOf(textOf(name)).filter((address) => {
    if (/^[a-z][a-z\d+.-]*:/i.test(address)) return !address.startsWith('https://')
    const [file = '', anchor] = address.split('#')
    const target =
      file === '' ? name : path.posix.join(path.posix.dirname(name), decodeURIComponent(file))
    const isThere =
      !file.startsWith('/') &&
      (files.includes(target) || files.some((each) => each.startsWith(`${target}/`)))
    if (!isThere) return true
    return (
      anchor !== undefined &&
      !(target.endsWith('.md') && anchorsOf(textOf(target)).includes(anchor))
    )
  })
}

let made: Packed
let files: readonly string[] = []
let folder = ''
const texts = new Map<string, string>()
const textOf = (name: string): string => texts.get(name) ?? ''

// Prints what importing an entry changed in the process, which is to be nothing.
const effects = `
const entry = process.argv[2]
const look = () => JSON.stringify({
  globals: Object.getOwnPropertyNames(globalThis).sort(),
  symbols: Object.getOwnPropertyNames(Symbol).sort(),
  resources: process.getActiveResourcesInfo().filter((name) => !/^(?:Pipe|TTY|FSReq)/.test(name)),
  listeners: process.eventNames().map(String).sort(),
})
const settle = () => new Promise((resolve) => setImmediate(resolve))
await import('node:net'); await import('node:tls'); await import('node:fs'); await import('node:crypto')
if (entry.endsWith('websocket-node') || entry.endsWith('testing') || entry === 'mqwire') await import('ws')
await settle()
const before = look()
const module = await import(entry)
await settle()
if (look() !== before) throw new Error('import changed ' + before + ' into ' + look())
if (Object.keys(module).length === 0) throw new Error('nothing is exported')
`

const required = `
const loaded = require(process.argv[2])
if (Object.keys(loaded).length === 0) throw new Error('nothing is exported')
if (process.argv[2] === 'mqwire' && typeof loaded.connect !== 'function') throw new Error('connect is missing')
`

const samePlatforms = `
import { readFileSync } from 'node:fs'
import { runInThisContext } from 'node:vm'
const file = (name) => new URL('./node_modules/mqwire/dist/client/' + name, import.meta.url)
const [node, browser] = await Promise.all([import(file('node.js')), import(file('browser.js'))])
const script = new URL('./node_modules/mqwire/dist/mqwire.js', import.meta.url)
runInThisContext(readFileSync(script, 'utf8'))
console.log(JSON.stringify([node, browser, globalThis.mqwire].map((names) => Object.keys(names).sort())))
`

beforeAll(async () => {
  await requireDist()
  made = await packed()
  files = made.files
  for (const name of files.filter((each) => each.endsWith('.md')))
    texts.set(name, await readFile(path.join(made.folder, 'node_modules', 'mqwire', name), 'utf8'))
  folder = await project({
    'effects.mjs': effects,
    'required.cjs': required,
    'same.mjs': samePlatforms,
    'bad.mjs': 'export const timer = setInterval(() => {}, 1000)\nglobalThis.leak = 1\n',
  })
  await linkPeers(folder)
})
afterAll(removeProjects)

describe('the tarball', () => {
  it('holds modules, source maps, declarations, README, LICENSE and what the README leads to, and nothing else', () => {
    const documents = [
      'package.json',
      'README.md',
      'SECURITY.md',
      'LICENSE',
      'dist/cli-licences.txt',
    ]
    expect(files).toEqual(expect.arrayContaining([...documents, 'dist/client/browser.d.ts']))
    const isModule = (name: string): boolean => /^dist\/[\w/-]+\.(?:js|js\.map|d\.ts)$/.test(name)
    const isPage = (name: string): boolean =>
      /^(?:docs|examples)\/[\w/-]+\.(?:md|js|test\.js|png|svg)$/.test(name)
    const known = (name: string): boolean =>
      documents.includes(name) || isModule(name) || isPage(name)
    expect(files.filter((name) => !known(name))).toEqual([])
  })

  it('holds every target of the exports map, and puts types first', () => {
    for (const entry of Object.values(packageExports)) {
      if (typeof entry === 'string') continue
      expect(Object.keys(entry)[0]).toBe('types')
      for (const target of Object.values(entry)) expect(files).toContain(target.slice(2))
    }
  })

  it('needs ws, and nothing else, to be installed into an empty project', async () => {
    expect(Object.keys(packageJson.dependencies)).toEqual(['ws'])
    const installed = await readdir(path.join(made.folder, 'node_modules'))
    expect(installed.filter((name) => !name.startsWith('.')).sort()).toEqual(['mqwire', 'ws'])
  })

  it('gives publint nothing to warn of, nothing to suggest', async () => {
    const tarball = Uint8Array.from(await readFile(made.tarball)).buffer
    const { messages } = await publint({ pack: { tarball }, level: 'suggestion', strict: true })
    expect(messages).toEqual([])
  })
})

describe('each entry', () => {
  it.each(entries)(
    '%s is imported without effect: no handle, listener or global, and the process ends',
    async (entry) => {
      const flags = ['--unhandled-rejections=strict', 'effects.mjs', entry]
      expect(await node(flags, folder, 10_000)).toEqual({ code: 0, output: '' })
    },
  )

  it('would be found out if it had an effect', async () => {
    const { code, output } = await node(['effects.mjs', './bad.mjs'], folder, 10_000)
    expect([code, output]).toEqual([1, expect.stringContaining('import changed')])
  })

  it.each(entries)('%s can be required from CommonJS', async (entry) => {
    const flags = ['--disable-warning=ExperimentalWarning', 'required.cjs', entry]
    expect(await node(flags, folder, 10_000)).toEqual({ code: 0, output: '' })
  })

  it('mqwire exports the same names in Node, in browsers, and in the file for <script>', async () => {
    const { output } = await node(['same.mjs'], folder, 10_000)
    const [inNode, inBrowser, inScript] = JSON.parse(output) as [string[], string[], string[]]
    expect(inNode).toEqual(inBrowser)
    expect(inScript).toEqual(inBrowser)
    expect(inNode).toEqual(expect.arrayContaining(['Client', 'MqttError', 'connect']))
  })

  it('mqwire/package.json is readable, and what is not exported is not', async () => {
    const script =
      "console.log(require('mqwire/package.json').name); require('mqwire/dist/client/node.js')"
    const { code, output } = await node(['-e', script], folder, 10_000)
    expect(code).toBe(1)
    expect(output).toMatch(/^mqwire\n/)
    expect(output).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })
})

describe('the package page', () => {
  it('says how to install it before anything else, and names every entry', () => {
    const lines = textOf('README.md').split('\n')
    expect(lines.slice(0, 16)).toContain('npm install mqwire')
    const transports = lines.find((line) => line.includes('mqwire/transport/…')) ?? ''
    const isNamed = (entry: string): boolean =>
      textOf('README.md').includes(`\`${entry}\``) ||
      (entry.startsWith('mqwire/transport/') && transports.includes(`\`${path.basename(entry)}\``))
    expect(entries.filter((entry) => !isNamed(entry))).toEqual([])
  })

  it('has no dead link, picture or anchor, nor has any other page of the tarball', () => {
    const dead = (name: string): string[] =>
      deadAddresses(name, files, textOf).map((address) => `${name}: ${address}`)
    expect([...texts.keys()]).toEqual(expect.arrayContaining(['README.md', 'docs/reference.md']))
    expect([...texts.keys()].flatMap(dead)).toEqual([])
    expect(addressesOf(textOf('README.md')).length).toBeGreaterThan(10)
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
    const [page = '', anchor = ''] = address.split('#')
    const heading = new RegExp(`^#+ ${anchor.replaceAll('-', '.')}`, 'im')
    expect(textOf(page).slice(textOf(page).search(heading)).slice(0, 2500)).toContain(answer)
  })

  it('leads to the documents and programs that came along, which are all of those in the tarball', () => {
    const linked = [...texts].flatMap(([name, text]) =>
      addressesOf(text).map((to) =>
        path.posix.join(path.posix.dirname(name), to.split('#')[0] ?? ''),
      ),
    )
    const isLinked = (name: string): boolean =>
      linked.some((to) => name === to || name.startsWith(`${to}/`))
    const alone = files.filter((name) => /^(?:docs|examples)\//.test(name) && !isLinked(name))
    expect(alone).toEqual([])
  })
})

it('package.json names a home, a repository and a place for bugs, of the project itself', () => {
  const { homepage, repository, bugs } = packageJson
  expect(repository.url).toMatch(/^git\+https:.*\.git$/)
  for (const address of [homepage, repository.url.slice('git+'.length), bugs.url])
    expect(address).toMatch(/^https:\/\/mqwire\.[a-z]+(?:\/|$)[^?@]*$/)
})

interface Locked {
  readonly resolved?: string
  readonly integrity?: string
  readonly inBundle?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

it.each([
  'package-lock.json',
  ...['', 'next/', 'programs/', 'react-native/', 'site/'].map(
    (tool) => `.ci/tools/${tool}package-lock.json`,
  ),
])('%s has checksums and the packages of every platform, and no download address', async (file) => {
  const { packages } = JSON.parse(await readFile(path.join(root, file), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>
  }
  const installed = Object.entries(packages).filter(([name]) => name !== '')
  expect(installed.length).toBeGreaterThan(40)
  const isWrong = ({ resolved, integrity, inBundle }: Locked): boolean =>
    resolved !== undefined || (integrity === undefined && inBundle !== true)
  expect(installed.filter(([, entry]) => isWrong(entry)).map(([name]) => name)).toEqual([])
  // Without them npm ci refuses it.
  const wanted = installed.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}))
  const isThere = (name: string): boolean =>
    installed.some(([at]) => at.endsWith(`node_modules/${name}`))
  expect(wanted.filter((name) => !isThere(name))).toEqual([])
})
