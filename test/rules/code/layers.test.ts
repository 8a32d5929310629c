/**
 * The import rule of the source tree, and proof that the rule's checker finds what it must.
 */
import { describe, expect, it } from 'vitest'
import { layerViolations, unusedAllowances } from './layers.js'
import { blank, importsOf, readSources } from './source.js'

const sources = readSources()

/** A tree of modules around one that is looked at. */
function tree(file: string, code: string): Map<string, string> {
  const others = [
    'errors.ts',
    'wire/index.ts',
    'transport/tcp.ts',
    'transport/transport.ts',
    'client/client.ts',
    'client/session/session.ts',
  ]
  const more = [
    'testing/index.ts',
    'auth/index.ts',
    'store/base/store.ts',
    'testing/broker/connection/peer.ts',
    'testing/broker/state/retained.ts',
  ]
  return new Map([
    ...[...others, ...more].map((name): [string, string] => [name, '']),
    [file, code],
  ])
}

describe('the import rule', () => {
  it('finds the sources', () => {
    expect(sources.has('errors.ts')).toBe(true)
    expect(importsOf(sources.get('transport/transport.ts') ?? '')).toEqual([])
  })

  it('holds in src', () => {
    expect(layerViolations(sources)).toEqual([])
  })

  it('allows nothing that src does not use', () => {
    expect(unusedAllowances(sources)).toEqual([])
    const without = new Map(
      [...sources].filter(([file]) => !/^wasm\/|^transport\/websocket-node/.test(file)),
    )
    const gone = [
      'wasm',
      'wasm wire',
      'transport/websocket-node.ts node:',
      'transport/websocket-node.ts ws',
    ]
    expect(unusedAllowances(without)).toEqual(gone)
  })
})

describe('the checker of the import rule', () => {
  it.each([
    ['errors.ts', "import { a } from './wire/index.js'"],
    ['wire/a.ts', "import type { A } from '../transport/transport.js'"],
    ['client/session/a.ts', "import { a } from '../client.js'"],
    ['client/a.ts', "import { type Dial } from '../transport/tcp.js'"],
    ['client/a.ts', "const { dial } = await import('../transport/tcp.js')"],
    ['testing/broker/state/a.ts', "import type { Peer } from '../connection/peer.js'"],
    ['testing/broker/helpers/a.ts', ''],
    ['store/a.ts', "import { mkdir } from 'node:fs/promises'"],
    ['client/a.ts', "import { connect } from 'node:net'"],
    ['transport/tcp.ts', "import { connect } from 'net'"],
    ['transport/tcp.ts', "import WebSocket from 'ws'"],
    ['client/a.ts', "import { something } from 'somewhere'"],
    ['client/a.ts', "import { a } from './missing.js'"],
    ['client/a.ts', "const a = require('./client.js')"],
    ['client/a.ts', 'await import(name)'],
    ['a.ts', ''],
  ])('objects to %s with %s', (file, code) => {
    expect(layerViolations(tree(file, code))).toHaveLength(1)
  })

  it.each([
    ['wire/a.ts', "import { MqttError } from '../errors.js'\nexport * from './index.js'"],
    [
      'client/a.ts',
      "import type { Dial } from '../transport/transport.js'\nimport { a } from '../wire/index.js'",
    ],
    [
      'client/node.ts',
      "import { cpus } from 'node:os'\nimport { dial } from '../transport/tcp.js'",
    ],
    [
      'transport/websocket-node.ts',
      "import WebSocket from 'ws'\nimport type { Socket } from 'node:net'",
    ],
    ['store/level.ts', "await import('classic-level')\nimport { mkdir } from 'node:fs/promises'"],
    [
      'client/a.ts',
      "// import { dial } from '../transport/tcp.js'\n/* import 'ws' */\nconst text = `import 'ws'`",
    ],
  ])('accepts %s with %s', (file, code) => {
    expect(layerViolations(tree(file, code))).toEqual([])
  })
})

describe('the source scanner', () => {
  it('lists each form of import', () => {
    const code = [
      "import a, { b } from './1.js'",
      "import type { C } from './2.js'",
      "export { d } // from './no.js'",
      "import * as e from './3.js'",
      "export type { F } from './4.js'",
      "export * as g from './5.js'",
      "import {\n  h,\n  type I,\n} from './6.js'",
      "import './7.js'",
      "const j = await import('./8.js')",
      "import type from './9.js'",
    ].join('\n')
    const kinds = importsOf(code).map(({ specifier, kind }) => `${specifier} ${kind}`)
    const expected = [
      '1 value',
      '2 type',
      '3 value',
      '4 type',
      '5 value',
      '6 value',
      '7 value',
      '8 dynamic',
      '9 value',
    ]
    expect(kinds.sort()).toEqual(expected.map((text) => `./${text.replace(' ', '.js ')}`))
  })

  it('blanks comments and literals, keeping every offset', () => {
    const code = `a = 'it\\'s' // b\nc = \`d\${e + \`f\${"g"}\`}h\` / 2 /* i */; j = /[/"]k/g.test(l) ? "m" : n / o / p`
    const text = blank(code)
    expect(text).toHaveLength(code.length)
    expect(text.match(/[a-z]+/g)).toEqual(['a', 'c', 'e', 'j', 'test', 'l', 'n', 'o', 'p'])
  })
})
