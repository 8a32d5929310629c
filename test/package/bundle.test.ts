/**
 * `connect` in a browser bundle: it needs nothing of Node and holds no server-side code. `npm run size` measures it.
 */
import { type BuildOptions, build, type Metafile } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { marked, marks } from './browser-code.js'
import { entries, packed, peers, requireDist } from './fixture.js'

const base: BuildOptions & { write: false; metafile: true } = {
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: 'esm',
  target: 'es2022',
  platform: 'browser',
  conditions: ['browser'],
  legalComments: 'none',
  logLevel: 'silent',
}

async function bundle(code: string, extra: BuildOptions = {}) {
  const { folder } = await packed()
  const stdin = { contents: code, resolveDir: folder, sourcefile: 'entry.js' }
  const result = await build({
    ...base,
    ...extra,
    write: false,
    metafile: true,
    absWorkingDir: folder,
    stdin,
  })
  const file = result.outputFiles[0]
  return { warnings: result.warnings, metafile: result.metafile, text: file?.text ?? '' }
}

/** The modules that the bundle holds code of, as paths below dist. */
function modules(metafile: Metafile): string[] {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs))
  const shipped = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([name]) => name)
  return shipped
    .filter((name) => name.includes('/dist/'))
    .map((name) => name.replace(/^.*\/dist\//, ''))
}

beforeAll(requireDist)

/** The modules of a bundle that are not of the package. */
const foreign = (metafile: Metafile): string[] =>
  Object.keys(metafile.inputs).filter(
    (name) => name !== 'entry.js' && !name.startsWith('node_modules/mqwire/dist/'),
  )

describe("import { connect } from 'mqwire' in a browser bundle", () => {
  const code = "import { connect } from 'mqwire'\nglobalThis.connect = connect\n"

  it('holds no encoder or decoder of the server side', async () => {
    const { metafile } = await bundle(code)
    const serverSide = ['wire/encode-server.js', 'wire/decode-client.js']
    expect(modules(metafile)).toContain('client/browser.js')
    expect(modules(metafile).filter((name) => serverSide.includes(name))).toEqual([])
    const whole = await bundle("export * from 'mqwire/wire'")
    expect(modules(whole.metafile)).toEqual(expect.arrayContaining(serverSide))
  })

  it('prints a client under its own name, whatever the bundler calls its class', async () => {
    const printed = "new Client('ws://a')[Symbol.for('nodejs.util.inspect.custom')]()"
    const shown = `globalThis.shown = [Client.name, ${printed}.constructor.name]`
    const { text } = await bundle(`import { Client } from 'mqwire'\n${shown}\n`, {
      format: 'iife',
    })
    new Function(text)()
    expect(globalThis).toMatchObject({ shown: ['Client', 'Client'] })
  })
})

it('the broker in memory: comes without the client, which only the virtual world holds', async () => {
  const codeOf = (name: string): string =>
    `import { ${name} } from 'mqwire/testing'\nglobalThis.it = ${name}\n`
  expect(modules((await bundle(codeOf('MemoryBroker'))).metafile)).not.toContain('client/client.js')
  expect(modules((await bundle(codeOf('VirtualWorld'))).metafile)).toEqual(
    expect.arrayContaining(['client/client.js', 'testing/broker/broker.js']),
  )
})

describe('every entry for browsers', () => {
  // Those that are left out say in their names that they are for Node.
  const forNode = [
    ...['tcp', 'tls', 'unix', 'websocket-node'].map((name) => `mqwire/transport/${name}`),
    'mqwire/store/file',
  ]

  it.each(entries.filter((entry) => !forNode.includes(entry)))(
    '%s builds without a warning, from our modules alone, and refers to nothing of Node',
    async (entry) => {
      const options = { define: { ...marks }, external: peers }
      const { warnings, metafile, text } = await bundle(`export * from '${entry}'`, options)
      expect(warnings).toEqual([])
      expect(modules(metafile).length).toBeGreaterThan(0)
      expect(foreign(metafile)).toEqual([])
      expect(marked(text)).toEqual([])
    },
  )

  it('would be found out if it referred to Node', async () => {
    const code = 'globalThis.a = [typeof process, Buffer.from([1])]\nglobalThis.b = { process: 1 }'
    const { text } = await bundle(code, { define: { ...marks } })
    expect(marked(text)).toEqual(['Buffer', 'process'])
    await expect(bundle("export * from 'mqwire/transport/tcp'")).rejects.toThrow('node:')
  })
})
