/**
 * No regular expression sees what a peer sent: the places in src that have any are listed here with what they see instead. With proof that the checks can fail.
 */
import { describe, expect, it } from 'vitest'
import { patternsIn } from './regular-expressions.js'
import { readSources } from './source.js'

/**
 * Where they may be, with what they see there: never a byte of the peer. The rest of src is guarded, a folder that is new or has moved too: the codec, the
 * session, and the way of bytes and text from the peer to the application.
 */
const open = [
  ['auth/saslprep.ts', 'the user name and the password of the caller'],
  ['auth/scram.ts', 'the nonce option of the caller'],
  ['client/common/schema.ts', 'names of our own options'],
  ['client/parsing/', 'options of the caller'],
  ['testing/scram-server.ts', "a test double: what its client says is the program's own"],
  ['transport/tls-context.ts', 'the certificates of the caller'],
  ['transport/websocket.ts', 'the URL of the caller'],
] as const
const places = open.map(([place]) => place)

const sources = readSources()

function present(): string[] {
  return [...sources].flatMap(([file, source]) =>
    patternsIn(source, file).map(({ text }) => `${file}: ${text}`),
  )
}

/** Patterns where there must be none, and places that are open for nothing. */
function breaches(lines: readonly string[]): string[] {
  const idle = places.filter((place) => !lines.some((line) => line.startsWith(place)))
  return [
    ...lines.filter((line) => !places.some((place) => line.startsWith(place))),
    ...idle.map((place) => `${place}: open for nothing`),
  ]
}

describe('regular expressions', () => {
  it('none is in src but in those places: not in the codec, the session and the way of a message to the application', () => {
    const lines = present()
    expect(breaches(lines)).toEqual([])
    const way = [
      'wire/decode.ts',
      'wasm/frames.ts',
      'transport/socket.ts',
      'client/connection/stream-reader.ts',
      'client/session/receive-window.ts',
    ]
    const files = [
      ...way,
      'client/delivery/message-router.ts',
      'client/subscribing/registry.ts',
      'client/requesting/request.ts',
      'client/gone/a.ts',
    ]
    for (const file of files)
      expect(breaches([...lines, `${file}: /a+/`])).toEqual([`${file}: /a+/`])
    const moved = lines.map((line) => line.replace('parsing', 'gone'))
    expect(breaches(moved)).toContain('client/parsing/: open for nothing')
  })

  it.each([
    ['a literal', 'const found = /a+/g.test(text)', ['/a+/g']],
    ['a constructor', 'const found = new RegExp(text)', ['RegExp']],
    ['one of another name', 'const Alias = globalThis.RegExp; new Alias(text)', ['RegExp']],
    [
      'a string that becomes one',
      'text.match("a|b"); text.search("c"); text.matchAll("a")',
      ['text.match("a|b")', 'text.search("c")', 'text.matchAll("a")'],
    ],
    ['in a split', 'text.split(/,/)', ['/,/']],
    ['none in divisions', 'const half = (a + b) / 2 / c', []],
    ['none in comments and strings', '// /a/\nconst text = "/b/" // new RegExp', []],
    [
      'none in methods of other things',
      'trie.match(topic, (value) => use(value)); text.replaceAll("a", "b"); text.split("/")',
      [],
    ],
  ])('is found: %s', (_name, source, texts) => {
    expect(patternsIn(source).map(({ text }) => text)).toEqual(texts)
  })
})
