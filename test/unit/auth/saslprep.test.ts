/** SASLprep: the examples of RFC 4013, and every table that is covered. */
import { expect, it } from 'vitest'
import { saslprep } from '../../../src/auth/saslprep.js'

const fails = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'password' })

function refused(text: string): unknown {
  try {
    return `let through: ${saslprep(text, 'password')}`
  } catch (error) {
    return error
  }
}

it.each([
  ['I\u00adX', 'IX'],
  ['user', 'user'],
  ['USER', 'USER'],
  ['\u00aa', 'a'],
  ['\u2168', 'IX'],
])('RFC 4013, section 3: %j becomes %j', (text, prepared) => {
  expect(saslprep(text, 'password')).toBe(prepared)
})

it('RFC 4013, section 3: U+0007 is prohibited', () => {
  expect(refused('\u0007')).toEqual(fails)
})

it('what is commonly mapped to nothing goes, any space becomes one', () => {
  expect(
    saslprep(
      'a\u00ad\u034f\u1806\u180b\u180c\u180d\u200b\u200c\u200d\u2060\ufe00\ufe0f\ufeffb',
      'password',
    ),
  ).toBe('ab')
  for (const space of '\u00a0\u1680\u2000\u200a\u202f\u205f\u3000 ')
    expect(saslprep(`a${space}b`, 'password')).toBe('a b')
})

it('compatibility forms are composed', () => {
  expect(saslprep('e\u0301\ufb01\u2460\uff21', 'password')).toBe('\u00e9fi1A')
})

it.each<[string, string]>([
  ['control characters', '\u0000\u001f\u007f\u0080\u009f'],
  ['more control characters', '\u06dd\u070f\u180e\u2028\u2029\u2061\u2063\u{1d173}\u{1d17a}'],
  ['private use', '\ue000\uf8ff\u{f0000}\u{10fffd}'],
  ['non-characters', '\ufdd0\ufdef\ufffe\uffff\u{1fffe}\u{10ffff}'],
  ['lone surrogates', '\udfff\udc00\ud800'],
  ['what does not belong in text', '\ufff9\ufffc\ufffd'],
  ['ideographic descriptions', '\u2ff0\u2ffb'],
  ['what changes the display', '\u200e\u200f\u202a\u202e\u206a\u206f'],
  ['tags', '\u{e0001}\u{e0020}\u{e007f}'],
])('prohibited: %s', (_what, characters) => {
  for (const character of characters)
    expect(refused(`a${character}b`), `U+${character.codePointAt(0)?.toString(16)}`).toEqual(fails)
})

it('what is left may not be nothing', () => {
  for (const text of ['', '\u00ad', '\ufeff\u200b']) expect(refused(text)).toEqual(fails)
})

it('ordinary text of many scripts passes as it is', () => {
  for (const text of [
    'pässwörd',
    'пароль',
    '密码',
    'كلمة',
    'סיסמה',
    'パスワード',
    '🔑',
    '~!@#$%^&*()_+{}|:"<>?',
  ])
    expect(saslprep(text, 'password')).toBe(text)
})
