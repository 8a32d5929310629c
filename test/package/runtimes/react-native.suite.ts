/**
 * The installed package in a bundle for React Native: made by Metro with React Native's own settings, compiled by the compiler of the current Hermes, and
 * run among the globals that React Native has. There is no Hermes to be had that runs outside a phone: the engine is V8.
 */
import { chmod, cp, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../real/brokers.js'
import { type Outcome, project, removeProjects, requireDist, run } from '../fixture.js'
import { round, wellDone } from '../page.js'
import { withFramework } from './fetched.js'

const index = `import { connect } from 'mqwire'
${round}
globalThis.outcome = round(globalThis.url)
`

// Metro as `react-native bundle` calls it, but that React Native itself, which would run first, is not there. Prints the modules of the bundle.
const bundling = `
const { createRequire } = require('node:module')
const path = require('node:path')
const { writeFileSync } = require('node:fs')
const packages = path.resolve('..')
const tool = createRequire(path.join(packages, 'package.json'))
const { getDefaultConfig, mergeConfig } = tool('@react-native/metro-config')
const { runBuild } = tool('metro')
const report = ({ type, message }) => /warn|error|fail/.test(type) && console.error(type, message ?? '')
const config = mergeConfig(getDefaultConfig(__dirname), {
  watchFolders: [packages],
  resolver: { nodeModulesPaths: [path.join(packages, 'node_modules')] },
  serializer: { getModulesRunBeforeMainModule: () => [] },
  reporter: { update: report },
  cacheStores: [],
})
runBuild(config, { entry: process.argv[2], platform: 'android', dev: false, minify: true }).then(({ code, map }) => {
  writeFileSync('bundle.js', code)
  const { sources, sections = [] } = JSON.parse(map)
  for (const name of sources ?? sections.flatMap((section) => section.map.sources)) console.log(name)
})
`

/**
 * Runs in the host: `node run.cjs bundle.js URL`. Prints what the global `outcome` comes to. A bundle finds the globals of React Native 0.88 on Hermes, and
 * none of the others that Node has. `URL` stands for react-native-url-polyfill and `crypto` for react-native-get-random-values. Everything made by the
 * host is given as the bundle's own realm has it. `WebSocket` is as strict as that of React Native: it takes text, and shows no `bufferedAmount`.
 */
const runner = `
const { randomFillSync } = require('node:crypto')
const { readFileSync } = require('node:fs')
const vm = require('node:vm')
const { WebSocket } = require('ws')

const [bundle, url] = process.argv.slice(2)
const host = {
  fill: (view) => randomFillSync(view),
  encode: (text) => new TextEncoder().encode(text),
  decoder: (label, options) => new TextDecoder(label, options),
  dial(url, protocols, socket) {
    const stream = new WebSocket(url, protocols)
    stream.on('open', () => socket.opened(stream.protocol))
    stream.on('message', (data) => socket.got(data))
    stream.on('close', (code, reason) => socket.closed(code, String(reason)))
    stream.on('error', (error) => socket.failed(error.message))
    return stream
  },
}
const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask, performance } = globalThis
const { AbortController, AbortSignal, Event, EventTarget, URL, URLSearchParams, console } = globalThis
const timers = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask }
const context = vm.createContext({ ...timers, performance, AbortController, AbortSignal, Event, EventTarget, URL, URLSearchParams, console, host, url })
const run = (code, filename) => vm.runInContext(code, context, { filename })

run(\`
  delete globalThis.WebAssembly
  delete globalThis.SharedArrayBuffer
  globalThis.window = globalThis.self = globalThis
  globalThis.process = { env: { NODE_ENV: 'production' } }
  globalThis.navigator = { product: 'ReactNative' }
  globalThis.crypto = { getRandomValues: ((fill) => (view) => (fill(view), view))(host.fill) }
  globalThis.TextEncoder = ((encode) => class { encode(text) { return new Uint8Array(encode(text)) } })(host.encode)
  globalThis.TextDecoder = ((make) => class {
    #decoder
    constructor(label, options) { this.#decoder = make(label, options) }
    decode(bytes, options) { return this.#decoder.decode(bytes, options) }
  })(host.decoder)
  globalThis.WebSocket = ((dial) => class {
    binaryType = 'blob'
    onopen = null
    onmessage = null
    onclose = null
    onerror = null
    #stream
    constructor(url, protocols) {
      if (typeof url !== 'string' || !Array.isArray(protocols)) throw new TypeError('the native side takes text, and a list of it')
      this.#stream = dial(url, protocols, {
        opened: (protocol) => { this.protocol = protocol; this.onopen?.({ type: 'open' }) },
        got: (data) => {
          if (this.binaryType !== 'arraybuffer') throw new Error('there are no blobs here')
          this.onmessage?.({ type: 'message', data: Uint8Array.from(data).buffer })
        },
        closed: (code, reason) => this.onclose?.({ type: 'close', code, reason }),
        failed: (message) => this.onerror?.({ type: 'error', message }),
      })
    }
    send(data) { this.#stream.send(data.slice()) }
    close(code, reason) { this.#stream.close(code, reason) }
  })(host.dial)
  delete globalThis.host
\`, 'setup.js')

run(readFileSync(bundle, 'utf8'), 'bundle.js')
run('outcome', 'end.js').then(console.log, (error) => {
  console.log(error)
  process.exitCode = 1
})
`

let broker: Broker

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  return () => broker.stop()
})
afterAll(removeProjects)

describe('React Native', () => {
  withFramework('react-native', (packages) => {
    const folder = path.join(packages, `application-${process.pid}`)
    const bundle = (entry: string) => run(process.execPath, ['bundle.cjs', entry], folder, 170_000)

    beforeAll(async () => {
      const installed = await project({
        'index.js': index,
        'bundle.cjs': bundling,
        'run.cjs': runner,
      })
      await cp(installed, folder, { recursive: true, verbatimSymlinks: true })
      return () => rm(folder, { recursive: true, force: true })
    })

    let made: Promise<Outcome> | undefined
    const bundled = () => {
      made ??= bundle('index.js')
      return made
    }

    it('is bundled by Metro without a warning, from modules for browsers alone', async () => {
      const { code, output } = await bundled()
      expect({ code, output }).toMatchObject({
        code: 0,
        output: expect.stringContaining(path.join('mqwire', 'dist', 'client', 'browser.js')),
      })
      expect(output).not.toMatch(/warn|error:|node_modules.ws.|client.node\.js|websocket-node/)
      expect(await readFile(path.join(folder, 'bundle.js'), 'utf8')).not.toMatch(/["'`]node:/)
    }, 180_000)

    it('talks at each QoS among the globals of React Native', async () => {
      await bundled()
      expect(
        await run(
          process.execPath,
          ['run.cjs', 'bundle.js', broker.urls.WebSocket ?? ''],
          folder,
          30_000,
        ),
      ).toEqual({
        code: 0,
        output: wellDone,
      })
    }, 180_000)

    const compilers: Readonly<Record<string, string>> = {
      linux: 'linux64-bin/hermesc',
      darwin: 'osx-bin/hermesc',
      win32: 'win64-bin/hermesc.exe',
    }
    it('compiles for Hermes', async () => {
      const compiler = path.join(
        packages,
        'node_modules',
        'hermes-compiler',
        'hermesc',
        compilers[process.platform] ?? '',
      )
      await bundled()
      await chmod(compiler, 0o755)
      expect(
        await run(
          compiler,
          ['-emit-binary', '-O', '-w', '-out', 'bundle.hbc', 'bundle.js'],
          folder,
        ),
      ).toEqual({ code: 0, output: '' })
    })
  })
})
