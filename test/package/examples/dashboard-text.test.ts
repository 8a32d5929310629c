/** What the dashboard shows of payloads, names and addresses, and remembers of connections: safe, short, and without secrets. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dashboard } from './dashboard.js'

const payload = await dashboard('model/payload.js')
const { visible, oneLine, preview, formatOf, render, pieces, limits } = payload
const { piecesOf } = await dashboard('model/json-layout.js')
const { recentIn, remembered, limits: recentLimits } = await dashboard('model/recent.js')
const { readSettings, writeSettings, withoutSecrets } = await dashboard('settings.js')

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const unicode = fc.string({ unit: 'binary' })
/** Control characters, bidirectional controls, zero widths, lone surrogates. */
const hidden =
  /[\p{Cc}\u{ad}\u{61c}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{2069}\u{feff}\p{Cs}]/u

/** Text and note of what is shown. */
function shown(given: string | Uint8Array, format: string): string[] {
  const { text, note } = render(typeof given === 'string' ? bytes(given) : given, format)
  return [text, note]
}

describe('text', () => {
  it('hides nothing', () => {
    fc.assert(fc.property(unicode, (text) => !hidden.test(visible(text).replace(/[\n\t]/g, ''))))
    expect(visible('a\0b\x1b[31m\u202egnp.exe')).toBe('a␀b␛[31m\\u{202e}gnp.exe')
    expect(visible('line\nline\ttab\r')).toBe('line\nline\ttab␍')
  })

  it('in one line is one line, and short', () => {
    fc.assert(fc.property(unicode, (text) => !hidden.test(oneLine(text))))
    expect(oneLine('a\nb\tc')).toBe('a␊b␉c')
    expect(oneLine('é'.repeat(100), 10)).toBe(`${'é'.repeat(10)}…`)
    expect(oneLine('😀'.repeat(10), 10)).toBe('😀'.repeat(10))
    expect(oneLine('x'.repeat(65_535)).length).toBe(limits.line + 1)
  })
})

describe('payloads', () => {
  it.each([
    ['', '(empty)', 'text'],
    ['hello', 'hello', 'text'],
    [' {"a":1}', ' {"a":1}', 'json'],
    ['[1', '[1', 'text'],
    ['21.5', '21.5', 'text'],
    ['\0\0\0\u0001', '00 00 00 01', 'hex'],
  ])('%j in a line, and as what it is best seen', (text, line, format) => {
    expect(preview(bytes(text))).toBe(line)
    if (text !== '') expect(formatOf(bytes(text))).toBe(format)
  })

  it('that are no text are hexadecimal, also in a line', () => {
    const odd = Uint8Array.from({ length: 20 }, (_, index) => 250 - index)
    expect(preview(odd)).toBe('fa f9 f8 f7 f6 f5 f4 f3 f2 f1 f0 ef ee ed ec eb …')
    expect(formatOf(odd)).toBe('hex')
    expect(shown(odd, 'text')).toEqual(['', 'These bytes are no UTF-8: see them as hexadecimal.'])
    expect(render(bytes('0123456789abcdefg\n'), 'hex').text).toBe(
      '000000  30 31 32 33 34 35 36 37  01234567\n000008  38 39 61 62 63 64 65 66  89abcdef\n000010  67 0a                    g·',
    )
  })

  it('are laid out as JSON, or said to be none', () => {
    expect(shown('{"a":[1,2]}', 'json')).toEqual(['{\n  "a": [\n    1,\n    2\n  ]\n}', ''])
    expect(shown('{"a":', 'json')).toEqual([
      '{"a":',
      'This is no JSON: Unexpected end of JSON input',
    ])
    expect(shown('', 'json')[1]).toBe('The payload is empty.')
    expect(shown('["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "\\"[["]', 'json')[1]).toBe('')
  })

  it('of 64 KiB of brackets, or of ones in brackets, are bounded', () => {
    const deep = '['.repeat(32_768) + ']'.repeat(32_768)
    expect(shown(deep, 'json')).toEqual([deep, 'Nested deeper than 32 levels.'])
    const wide = `${'['.repeat(31)}${'1,'.repeat(32_000)}1${']'.repeat(31)}`
    expect(render(bytes(wide), 'json').text.length).toBeLessThanOrEqual(limits.text)
  })

  it('that are longer than what is shown say so, and are cut between characters', () => {
    const long = 'x'.repeat(limits.text - 1)
    expect(shown(`${long}éé`, 'text')).toEqual([long, 'The first 65,536 of 65,539 bytes.'])
    const [lines, note] = shown(new Uint8Array(100_000), 'hex')
    expect([lines?.split('\n').length, note]).toEqual([
      limits.hex / 8,
      'The first 4,096 of 100,000 bytes.',
    ])
  })

  it('never break it', () => {
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      unicode.map(bytes),
      fc.json().map(bytes),
    )
    fc.assert(
      fc.property(any, (payload) => {
        for (const format of ['text', 'json', 'hex'] as const) {
          const { text, note } = render(payload, format)
          expect(hidden.test(text.replace(/[\n\t]/g, ''))).toBe(false)
          expect(typeof note).toBe('string')
        }
        expect(hidden.test(preview(payload))).toBe(false)
        return ['text', 'json', 'hex'].includes(formatOf(payload))
      }),
    )
  })
})

describe('figures', () => {
  it('are as people say them', () => {
    const sizes = [0, 1023, 1024, 150_000, 16 * 1024 ** 2, 5e15]
    expect(sizes.map(payload.size).join()).toBe('0 B,1023 B,1.0 KiB,146 KiB,16.0 MiB,4547 TiB')
    const ages = [-5, 0, 59_999, 60_000, 3_600_000, 90_000_000]
    expect(ages.map(payload.age).join()).toBe('0 s,0 s,59 s,1 min,1 h,1 d')
    const numbers = [0, 12, 123_456, 21.3456, 0.00012, 12_345_678, -1e12]
    expect(numbers.map(payload.short).join('  ')).toBe(
      '0  12  123,456  21.35  1.20e-4  1.23e+7  -1.00e+12',
    )
  })
})

describe('the address', () => {
  const standard = { url: '', filter: '#', qos: 1, publish: 'hello' }

  /** What cannot be written in UTF-8 is written as U+FFFD. */
  const wellFormed = (text: string): string =>
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes(text))

  it('leads back to the same settings', () => {
    const settings = fc.record({
      url: fc.webUrl({ validSchemes: ['ws', 'wss'] }),
      filter: unicode,
      qos: fc.constantFrom(0, 1, 2),
      publish: unicode,
    })
    fc.assert(
      fc.property(settings, (given) => {
        const [filter, publish] = [wellFormed(given.filter), wellFormed(given.publish)]
        const wanted = { url: withoutSecrets(given.url), filter, qos: given.qos, publish }
        expect(readSettings(writeSettings(given))).toEqual(wanted)
      }),
    )
    expect(readSettings('')).toEqual(standard)
    expect(readSettings('?qos=7&url=')).toEqual(standard)
    const given = { url: 'ws://127.0.0.1:9001', filter: 'plant/#', qos: 2, publish: 'hello' }
    expect(readSettings('?url=ws://127.0.0.1:9001&topic=plant/%23&qos=2')).toEqual(given)
  })

  it('never holds user name and password', () => {
    const written = writeSettings({
      url: 'wss://user:pass@broker.example/mqtt',
      filter: '#',
      qos: 1,
    })
    expect(written).toBe('?url=wss%3A%2F%2Fbroker.example%2Fmqtt&topic=%23&qos=1')
    expect(withoutSecrets('ws://u:p@host:9001/')).toBe('ws://host:9001')
    expect(withoutSecrets('ws://host/mqtt/')).toBe('ws://host/mqtt/')
    expect(withoutSecrets('no url')).toBe('no url')
  })
})

describe('connections that were used', () => {
  const one = { url: 'ws://a:9001', filter: '#', qos: 1, username: 'ann' }

  it('are kept newest first, once each, and not too many', () => {
    const [first, second] = [{ ...one, filter: 'x/#' }, { ...one, qos: 2 }] // biome-ignore format: short
    let list = [one, first, second].reduce((before, each) => remembered(before, each), [])
    expect(list).toEqual([second, first])
    for (let number = 0; number < 20; number += 1)
      list = remembered(list, { ...one, url: `ws://a:${number}` })
    expect(list).toHaveLength(recentLimits.connections)
    expect(list[0]).toMatchObject({ url: 'ws://a:19' })
    expect(recentIn(JSON.stringify(list))).toEqual(list)
  })

  it('are kept without a password, whoever hands one in', () => {
    const secret = { ...one, url: 'ws://ann:canary@a:9001', password: 'canary' }
    for (const kept of [remembered([], secret), recentIn(JSON.stringify([secret]))])
      expect(JSON.stringify(kept)).not.toContain('canary')
  })

  it.each([
    '',
    'null',
    '{}',
    '[1,null,{}]',
    '[{"url":1,"filter":"#","qos":1,"username":""}]',
    '[{"url":"a","filter":"#","qos":7,"username":""}]',
  ])('are none in %j', (text) => {
    expect(recentIn(text)).toEqual([])
  })
})

describe('JSON in pieces', () => {
  it('is what JSON.stringify lays out, with each number alone and named by its path', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const made = [...piecesOf(value)]
        expect(made.map(({ text }) => text).join('')).toBe(JSON.stringify(value, null, 2))
        for (const { text, field } of made)
          expect(field !== undefined).toBe(field !== undefined && Number.isFinite(Number(text)))
      }),
    )
    const numbers = [...piecesOf({ a: { b: [1, 'x', 2.5] }, c: -3, d: '4' })].filter(
      ({ field }) => field !== undefined,
    )
    expect(numbers.map(({ text, field }) => `${field}=${text}`)).toEqual([
      'a.b.0=1',
      'a.b.2=2.5',
      'c=-3',
    ])
  })

  it('is bounded, safe to show, and one piece where it is no JSON', () => {
    const laidOut = (text: string): string => {
      const given = bytes(text)
      return [...pieces(given, 'json', render(given, 'json').text)]
        .map((piece) => piece.text)
        .join('')
    }
    expect(laidOut(JSON.stringify(Array(20_000).fill(7))).length).toBeLessThanOrEqual(65_536)
    expect(pieces(bytes('{"a'), 'json', '{"a')).toEqual([{ text: '{"a', field: undefined }])
    expect(pieces(bytes(' 21.5'), 'text', ' 21.5')).toEqual([{ text: ' 21.5', field: 'value' }])
    expect(laidOut(JSON.stringify({ 'a\u202e': 1 }))).toBe('{\n  "a\\u{202e}": 1\n}')
  })

  it('says what is wrong with it, shown and sent', () => {
    expect(render(bytes('{"a":}'), 'json').note).toMatch(/^This is no JSON: Unexpected token/)
    expect(render(bytes('{"a":}'), 'text').note).toBe('')
    expect(render(bytes('{"a":}'), 'text', 'application/json').note).toMatch(
      /^The content type says JSON, but it is none: /,
    )
    expect(render(bytes('{"a":1}'), 'text', 'application/json').note).toBe('')
    expect(
      ['application/json', 'application/JSON; charset=utf-8', 'application/senml+json'].map(
        payload.isJson,
      ),
    ).toEqual([true, true, true])
    expect(['text/plain', ''].map(payload.isJson)).toEqual([false, false])
    expect([payload.jsonProblem('1'), payload.jsonProblem(' ')]).toEqual([undefined, 'it is empty'])
  })
})
