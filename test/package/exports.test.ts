/**
 * The package as published: what the tarball holds, and that each entry of its exports map can be imported, and required, without any effect.
 */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  entries,
  linkPeers,
  node,
  packageExports,
  packed,
  project,
  removeProjects,
  requireDist,
} from './fixture.js'

let folder = ''
let files: readonly string[] = []

beforeAll(async () => {
  await requireDist()
  files = (await packed()).files
  folder = await project({
    'effects.mjs': effects,
    'required.cjs': required,
    'same.mjs': samePlatforms,
    'bad.mjs': bad,
  })
  await linkPeers(folder)
})
afterAll(removeProjects)

describe('the tarball', () => {
  it('holds modules, source maps, declarations, README, LICENSE and what the README leads to, and nothing else', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        'package.json',
        'README.md',
        'LICENSE',
        'dist/client/node.js',
        'dist/client/browser.d.ts',
      ]),
    )
    const modules = files.filter((name) => /^dist\/[\w/-]+\.(?:js|js\.map|d\.ts)$/.test(name))
    const pages = files.filter((name) =>
      /^(?:docs|examples)\/[\w/-]+\.(?:md|js|test\.js|png)$/.test(name),
    )
    expect(
      files.filter(
        (name) =>
          ![...modules, ...pages, 'package.json', 'README.md', 'SECURITY.md', 'LICENSE'].includes(
            name,
          ),
      ),
    ).toEqual([])
  })

  it('holds every target of the exports map', () => {
    const targets = Object.values(packageExports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    )
    expect(
      targets
        .map((target) => target.replace(/^\.\//, ''))
        .filter((target) => !files.includes(target)),
    ).toEqual([])
  })

  it('depends on nothing but what the published modules import', async () => {
    const { dependencies } = JSON.parse(
      await readFile(path.join(folder, 'node_modules', 'mqwire', 'package.json'), 'utf8'),
    ) as {
      dependencies: object
    }
    expect(Object.keys(dependencies)).toEqual(['ws'])
  })

  it('needs ws, and nothing else, to be installed into an empty project', async () => {
    const installed = await readdir(path.join((await packed()).folder, 'node_modules'))
    expect(installed.filter((name) => !name.startsWith('.')).sort()).toEqual(['mqwire', 'ws'])
  })

  it('puts types first in every entry', () => {
    for (const entry of Object.values(packageExports))
      if (typeof entry !== 'string') expect(Object.keys(entry)[0]).toBe('types')
  })
})

// Prints what importing an entry changed in the process, which is to be nothing.
const probe = `
const entry = process.argv[2]
const look = () => JSON.stringify({
  globals: Object.getOwnPropertyNames(globalThis).sort(),
  symbols: Object.getOwnPropertyNames(Symbol).sort(),
  resources: process.getActiveResourcesInfo().filter((name) => !/^(?:Pipe|TTY|FSReq)/.test(name)),
  listeners: process.eventNames().map(String).sort(),
})
const settle = () => new Promise((resolve) => setImmediate(resolve))
`

const effects = `${probe}
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
const file = (name) => new URL('./node_modules/mqwire/dist/client/' + name, import.meta.url)
const [node, browser] = await Promise.all([import(file('node.js')), import(file('browser.js'))])
console.log(JSON.stringify([Object.keys(node), Object.keys(browser)]))
`

const bad =
  "export const timer = setInterval(() => {}, 1000)\nglobalThis.leak = 1\nprocess.on('exit', () => {})\n"

describe('each entry', () => {
  it.each(entries)(
    '%s is imported without effect: no handle, listener or global, and the process ends',
    async (entry) => {
      expect(
        await node(['--unhandled-rejections=strict', 'effects.mjs', entry], folder, 10_000),
      ).toEqual({ code: 0, output: '' })
    },
  )

  it.each(entries)('%s can be required from CommonJS', async (entry) => {
    const { code, output } = await node(
      ['--disable-warning=ExperimentalWarning', 'required.cjs', entry],
      folder,
      10_000,
    )
    expect({ code, output }).toEqual({ code: 0, output: '' })
  })

  it('mqwire exports the same names in Node and in browsers', async () => {
    const { output } = await node(['same.mjs'], folder, 10_000)
    const [inNode, inBrowser] = JSON.parse(output) as [string[], string[]]
    expect(inNode).toEqual(inBrowser)
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

  it('would be found out if it had an effect', async () => {
    const { code, output } = await node(['effects.mjs', './bad.mjs'], folder, 10_000)
    expect(code).toBe(1)
    expect(output).toContain('import changed')
  })
})
