/**
 * The declarations as users' compilers see them: without Node's types, with the oldest and the newest TypeScript, in both module resolutions.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compilers,
  entries,
  link,
  linkPeers,
  node,
  packageExports,
  peers,
  project,
  removeProjects,
  requireDist,
  root,
  writeFiles,
} from '../package/fixture.js'
import { blank, importsOf } from '../rules/code/source.js'

beforeAll(requireDist)
afterAll(removeProjects)

const page = `
import { connect, MqttError, type Client, type Message } from 'mqwire'

export async function show(): Promise<void> {
  const client: Client = await connect('wss://broker.example/mqtt', { clientId: 'page-1' })
  for await (const message of await client.subscribe('events/#', { qos: 1 })) {
    const { topic, payload }: Message = message
    const value: unknown = message.json()
    const blob = new Blob([payload])
    const body: BodyInit = payload
    await crypto.subtle.digest('SHA-256', payload)
    console.log(topic, message.text(), value, blob.size, body)
    break
  }
  await client.publish('events/hello', 'hi', { qos: 1 })
  const taken: boolean = client.post('telemetry/a1', new Uint8Array(4))
  if (!taken) console.log(client.state)
  await client.disconnect()
}

export function explain(error: unknown): string {
  return MqttError.is(error) ? \`\${error.code} \${error.outcome}\` : String(error)
}

export const timer: number = setTimeout(() => {}, 1)
`

const codec = `
import { decode, Decoder, encode, type Packet } from 'mqwire/wire'

export const bytes = encode({ type: 'pingreq' })
export const blob = new Blob([bytes])
export const packet: Packet = decode(bytes, { from: 'client' })
export const decoder = new Decoder({ protocolVersion: 5, from: 'server', maximumPacketSize: 1024 })
export const packets: Packet[] = [...decoder.push(bytes)]
`

const everything = entries
  .map((entry, index) => `export * as entry${index} from '${entry}'`)
  .join('\n')

const sameOnBothPlatforms = `
import type * as browser from './node_modules/mqwire/dist/client/browser.js'
import type * as node from './node_modules/mqwire/dist/client/node.js'
declare const inBrowser: typeof browser
declare const inNode: typeof node
export const a: typeof node = inBrowser
export const b: typeof browser = inNode
`

const files = {
  'page.ts': page,
  'codec.ts': codec,
  'everything.ts': everything,
  'same.ts': sameOnBothPlatforms,
}

const settings = {
  target: 'es2022',
  lib: ['es2022', 'dom'],
  types: [] as string[],
  strict: true,
  skipLibCheck: false,
  noEmit: true,
  exactOptionalPropertyTypes: true,
}

const resolutions = [
  ['bundler', 'es2022'],
  ['nodenext', 'nodenext'],
] as const

/** Type-checks a folder with the compiler; empty when all is well. */
async function compile(folder: string, compiler: string, options: object): Promise<string> {
  await writeFiles(folder, {
    'tsconfig.json': JSON.stringify({ compilerOptions: options, include: ['*.ts'] }),
  })
  const { output } = await node([compiler, '-p', folder], folder)
  return output
}

const cases = compilers.flatMap(([version, file]) =>
  resolutions.map(([resolution, module]) => ({ version, file, resolution, module })),
)

describe('the declarations', () => {
  it.each(cases)(
    'compile in a page with TypeScript $version and $resolution resolution',
    async ({ file, resolution, module }) => {
      const folder = await project(files)
      await linkPeers(folder)
      expect(
        await compile(folder, file, { ...settings, module, moduleResolution: resolution }),
      ).toBe('')
    },
  )

  it.each(compilers)(
    'compile beside the types of Node and the newest library with TypeScript %s',
    async (_, file) => {
      const disposing =
        "import { connect } from 'mqwire'\nawait using client = await connect('mqtt://127.0.0.1')\nclient.post('a', 'b')\n"
      const folder = await project({ 'everything.ts': everything, 'disposing.ts': disposing })
      await linkPeers(folder)
      // Without its undici-types the types of Node do not compile: their own check is not what this is about.
      await link(folder, '@types/node')
      await link(folder, 'undici-types')
      const libraries = { ...settings, lib: ['esnext', 'dom'], types: ['node'], skipLibCheck: true }
      expect(
        await compile(folder, file, {
          ...libraries,
          module: 'nodenext',
          moduleResolution: 'nodenext',
        }),
      ).toBe('')
    },
  )

  it.each(compilers)('would be found wanting by TypeScript %s', async (_, file) => {
    const folder = await project({
      'wrong.ts':
        "import { connect } from 'mqwire'\nexport const port: number = connect('mqtt://127.0.0.1')\n",
      'missing.ts':
        "import 'mqwire/dist/client/node.js'\nimport { nothing } from 'mqwire'\nnothing()\n",
    })
    const module = { module: 'nodenext', moduleResolution: 'nodenext' }
    // What is right in the libraries has been seen above.
    const said = await compile(folder, file, { ...settings, ...module, skipLibCheck: true })
    expect(said).toContain('wrong.ts(2,')
    expect(said).toContain('missing.ts(2,')
  })
})

/** The declarations that a user's compiler reads: those of the entries, and what they import. Path below dist, with text. */
function reachable(): [string, string][] {
  const targets = Object.values(packageExports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry['types'] as string],
  )
  const pending = [...targets.map((target) => target.replace('./dist/', '')), 'client/node.d.ts']
  const found = new Map<string, string>()
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue
    const code = readFileSync(path.join(root, 'dist', name), 'utf8')
    found.set(name, code)
    const folder = path.dirname(name)
    const relative = importsOf(code).filter(({ specifier }) => specifier.startsWith('.'))
    pending.push(
      ...relative.map(({ specifier }) => path.join(folder, specifier.replace(/\.js$/, '.d.ts'))),
    )
  }
  return [...found]
}

describe('the text of the declarations', () => {
  it('has no any', () => {
    expect(reachable().length).toBeGreaterThan(10)
    const offending = reachable().filter(([, code]) => /\bany\b/.test(blank(code)))
    expect(offending.map(([name]) => name)).toEqual([])
  })

  it('names no Node type and no other package but the peer of an entry', () => {
    const isAllowed = (name: string, specifier: string): boolean =>
      name.startsWith('tracing/')
        ? specifier === '@opentelemetry/api'
        : /^(?:react|compat)\//.test(name) && ['mqwire', ...peers].includes(specifier)
    const foreign = reachable().flatMap(([name, code]) =>
      importsOf(code)
        .filter(({ specifier }) => !specifier.startsWith('.') && !isAllowed(name, specifier))
        .map(({ specifier }) => `${name}: ${specifier}`),
    )
    expect(foreign).toEqual([])
    // One asks whether there is a Buffer.
    const others = reachable().filter(([name]) => name !== 'compat/packet-types.d.ts')
    const references = others.filter(
      ([, code]) => /^\/\/\/\s*<reference/m.test(code) || /\b(?:NodeJS|Buffer)\b/.test(blank(code)),
    )
    expect(references.map(([name]) => name)).toEqual([])
  })

  it('has no type arguments on byte arrays, which TypeScript before 5.7 does not know', () => {
    const offending = reachable().flatMap(([name, code]) =>
      [...blank(code).matchAll(/\bUint8Array<\w*>/g)].map((use) => `${name}: ${use[0]}`),
    )
    expect(offending).toEqual([])
  })
})
