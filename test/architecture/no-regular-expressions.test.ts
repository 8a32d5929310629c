/**
 * No regular expression sees what a peer sent: each one in src is listed here with what it sees instead. With proof that the checks can fail.
 */
import { describe, expect, it } from 'vitest'
import { patternsIn } from './regular-expressions.js'
import { readSources } from './source.js'

/** Every regular expression of src, below which file, and why it may be there: none sees a byte of the peer. */
const allowed: readonly (readonly [file: string, text: string, why: string])[] = [
  [
    'auth/saslprep.ts',
    String.raw`/[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u06dd\u070f\u180e\u200e\u200f\u2028-\u202e\u2061-\u2063\u206a-\u206f\u2ff0-\u2ffb\ufff9-\ufffd\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}]/u`,
    'the user name and the password of the caller',
  ],
  ['auth/saslprep.ts', String.raw`/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/gu`, 'the user name and the password of the caller'],
  [
    'auth/saslprep.ts',
    String.raw`/[\u00ad\u1806\u200b-\u200d\u2060\ufeff]|\u034f|[\u180b-\u180d]|[\ufe00-\ufe0f]/gu`,
    'the user name and the password of the caller',
  ],
  ['auth/scram.ts', String.raw`/^[\x21-\x2b\x2d-\x7e]{1,1024}$/`, 'the nonce option of the caller'],
  ['client/parsing/options.ts', String.raw`/^[^/@?#\\\s]+$/`, 'the serverReferences option of the caller'],
  ['client/parsing/endpoint.ts', String.raw`/^[!#-'*+.^-z|~\w-]+$/`, 'the sub-protocols of the caller'],
  ['client/common/schema.ts', '/, ([^,]*)$/', 'names of our own options'],
  ['testing/scram-server.ts', '/=(?!2C|3D)/u', "a test double: what its client says is the program's own"],
  [
    'testing/scram-server.ts',
    String.raw`/^([ny],(?:a=[^,]*)?,)(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^,]+)*)$/u`,
    "a test double: what its client says is the program's own",
  ],
  ['testing/scram-server.ts', '/^(c=([^,]+),r=([^,]+)(?:,[A-Za-z]=[^,]+)*),p=([^,]+)$/u', "a test double: what its client says is the program's own"],
  ['transport/tls-context.ts', '/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END/g', 'the certificates of the caller'],
  ['transport/websocket.ts', String.raw`/^(localhost|127\..*|\[::1])$/`, 'the URL of the caller'],
]

/**
 * Where they may be at all: what sees the caller's options, or is a test double. The rest of src is guarded, a folder that is new or has moved too: the
 * codec, the session, and the way of bytes and text from the peer to the application.
 */
const open = [
  'auth/saslprep.ts',
  'auth/scram.ts',
  'client/common/schema.ts',
  'client/parsing/',
  'testing/scram-server.ts',
  'transport/tls-context.ts',
  'transport/websocket.ts',
]

const sources = readSources()

function present(): string[] {
  return [...sources].flatMap(([file, source]) => patternsIn(source, file).map(({ text }) => `${file}: ${text}`))
}

/** Patterns where there must be none, and places that are open for nothing. */
function breaches(lines: readonly string[]): string[] {
  const idle = open.filter((place) => !lines.some((line) => line.startsWith(place)))
  return [...lines.filter((line) => !open.some((place) => line.startsWith(place))), ...idle.map((place) => `${place}: open for nothing`)]
}

describe('regular expressions', () => {
  it('none is in src but those listed, which see what the caller gave and never what a peer sent', () => {
    expect(present().sort()).toEqual(allowed.map(([file, text]) => `${file}: ${text}`).sort())
    for (const [, , why] of allowed) expect(why.length).toBeGreaterThan(10)
  })

  it('none is in the codec, the session and the way of a message to the application', () => {
    const lines = present()
    expect(breaches(lines)).toEqual([])
    const way = ['wire/decode.ts', 'wasm/frames.ts', 'transport/socket.ts', 'client/connection/stream-reader.ts', 'client/session/receive-window.ts']
    const files = [...way, 'client/delivery/message-router.ts', 'client/subscribing/registry.ts', 'client/requesting/request.ts', 'client/gone/a.ts']
    for (const file of files) expect(breaches([...lines, `${file}: /a+/`])).toEqual([`${file}: /a+/`])
    const moved = lines.map((line) => line.replace('parsing', 'gone'))
    expect(breaches(moved)).toContain('client/parsing/: open for nothing')
  })

  it.each([
    ['a literal', 'const found = /a+/g.test(text)', ['/a+/g']],
    ['a constructor', 'const found = new RegExp(text)', ['RegExp']],
    ['a call', 'const found = RegExp(text, "u")', ['RegExp']],
    ['one of another name', 'const Alias = globalThis.RegExp; new Alias(text)', ['RegExp']],
    [
      'a string that becomes one',
      'text.match("a|b"); text.search("c"); text.matchAll("a")',
      ['text.match("a|b")', 'text.search("c")', 'text.matchAll("a")'],
    ],
    ['in a replacement', 'text.replace(/\\s/u, "")', ['/\\s/u']],
    ['in a split', 'text.split(/,/)', ['/,/']],
    ['none in divisions', 'const half = (a + b) / 2 / c', []],
    ['none in comments and strings', '// /a/\nconst text = "/b/" // new RegExp', []],
    ['none in types', 'function use(pattern: RegExp): void {}', []],
    ['none in methods of other things', 'trie.match(topic, (value) => use(value)); text.replaceAll("a", "b"); text.split("/")', []],
  ])('is found: %s', (_name, source, texts) => {
    expect(patternsIn(source).map(({ text }) => text)).toEqual(texts)
  })
})
