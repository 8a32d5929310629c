/** The server's side of SCRAM-SHA-256: the published vector, clients that are wrong, the two sides against each other, through the whole client too; and SASLprep. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { saslprep } from '../../../src/auth/saslprep.js'
import { Client } from '../../../src/client/node.js'
import type { BrokerAuthContext } from '../../../src/testing/broker/common/options.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import {
  type ScramLookup,
  type ScramServerOptions,
  scramServer,
} from '../../../src/testing/scram-server.js'
import { bytes, context, text, thrown, vector } from './exchange.js'

const fixed: ScramServerOptions = {
  salt: Buffer.from(vector.salt, 'base64'),
  nonce: () => vector.serverNonce,
}
const users = (name: string): string | undefined =>
  name === vector.username ? vector.password : undefined

function connection(): BrokerAuthContext {
  return {
    clientId: 'c',
    username: undefined,
    remote: undefined,
    reauthentication: false,
    state: {},
  }
}

const refused = { code: 'ERR_AUTH_FAILED', reasonCode: 0x87 }
const isRefused = async (call: () => unknown): Promise<void> =>
  expect(await thrown(call)).toMatchObject(refused)

/** A whole exchange. @throws what either side throws */
async function login(
  username: string,
  password: string,
  lookup: ScramLookup = users,
): Promise<string> {
  const [client, server, ctx, link] = [
    scramSha256({ username, password }),
    scramServer(lookup),
    context(),
    connection(),
  ]
  const challenge = await server.start(client.start(ctx), link)
  expect(challenge.reasonCode).toBe(0x18)
  const verdict = await server.continue((await client.continue(challenge.data, ctx))?.slice(), link)
  expect(verdict.reasonCode).toBe(0)
  client.success(verdict.data, ctx)
  return 'welcome'
}

it('the exchange of RFC 7677: byte by byte', async () => {
  const [server, link] = [scramServer(users, fixed), connection()]
  const challenge = await server.start(bytes(vector.clientFirst), link)
  expect([challenge.reasonCode, text(challenge.data)]).toEqual([0x18, vector.serverFirst])
  const verdict = await server.continue(bytes(vector.clientFinal), link)
  expect([verdict.reasonCode, text(verdict.data)]).toEqual([0, vector.serverFinal])
})

describe('client against server', () => {
  it('a wrong one and an unknown user are refused in the same way', async () => {
    const wrong = await thrown(() => login('user', 'pencils'))
    const unknown = await thrown(() => login('nobody', 'pencil'))
    expect(wrong).toMatchObject(refused)
    expect(unknown).toEqual(wrong)
  })

  it('the right password, also from a lookup that takes its time', async () => {
    for (const lookup of [users, async (name: string) => users(name)])
      expect(await login('user', 'pencil', lookup)).toBe('welcome')
  })

  it('any names and passwords, with every character that is allowed', async () => {
    const allowed = (value: string): boolean => {
      try {
        return saslprep(value, 'x') !== ''
      } catch {
        return false
      }
    }
    const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter(allowed)
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(word, fc.constantFrom('a,b', 'a=b', '=2C', ',=,')),
        word,
        async (username, password) => {
          const lookup = (name: string) =>
            name === saslprep(username, 'x') ? saslprep(password, 'x') : undefined
          expect(await login(username, password, lookup)).toBe('welcome')
        },
      ),
      { numRuns: 40 },
    )
  })
})

describe('clients that are wrong', () => {
  it.each([
    ['nothing', undefined],
    ['no text', '\u0000'],
    ['channel binding', 'p=tls-unique,,n=user,r=abc'],
    ['no header', 'n=user,r=abc'],
    ['no user name', 'n,,n=,r=abc'],
    ['user name with a bare equals sign', 'n,,n=a=b,r=abc'],
    ['no nonce', 'n,,n=user,r='],
    ['mandatory extension', 'n,,m=x,n=user,r=abc'],
  ])('first message: %s', async (_what, first) => {
    const [server, link] = [scramServer(users), connection()]
    await isRefused(() => server.start(first === undefined ? undefined : bytes(first), link))
    await isRefused(() => server.continue(bytes(vector.clientFinal), link))
  })

  it.each([
    ['proof', vector.clientFinal.replace('dHzb', 'dHzc')],
    ['proof that is cut', vector.clientFinal.replace('ndVQ=', 'ndQ==')],
    ['proof that is no base64', vector.clientFinal.replace('dHzb', '****')],
    ['no proof', vector.clientFinal.replace(/,p=.*/, '')],
    ['nonce', vector.clientFinal.replace('rOpr', 'rOpX')],
    ['channel binding', vector.clientFinal.replace('biws', 'eSws')],
    ['words', 'hello'],
  ])('last message: %s', async (_what, last) => {
    const [server, link] = [scramServer(users, fixed), connection()]
    await server.start(bytes(vector.clientFirst), link)
    await isRefused(() => server.continue(bytes(last), link))
    // One try.
    await isRefused(() => server.continue(bytes(vector.clientFinal), link))
  })

  it('an authorization identity that the proof does not cover', async () => {
    const [client, server, ctx, link] = [
      scramSha256({ username: 'user', password: 'pencil' }),
      scramServer(users),
      context(),
      connection(),
    ]
    const first = `${text(client.start(ctx))}`.replace('n,,', 'n,a=admin,')
    const last = await client.continue((await server.start(bytes(first), link)).data, ctx)
    await isRefused(() => server.continue(last, link))
  })

  it('a proof for another connection', async () => {
    const server = scramServer(users, fixed)
    await server.start(bytes(vector.clientFirst), connection())
    await isRefused(() => server.continue(bytes(vector.clientFinal), connection()))
  })

  it('y,, and an authorization identity are taken', async () => {
    for (const header of ['y,,', 'n,a=admin,']) {
      const [server, link] = [scramServer(users), connection()]
      expect((await server.start(bytes(`${header}n=user,r=abc`), link)).reasonCode).toBe(0x18)
    }
  })
})

it('logs in, and authenticates again on the open connection', async () => {
  const auth = { 'SCRAM-SHA-256': scramServer((name) => (name === 'user' ? 'pencil' : undefined)) }
  const broker = new MemoryBroker({ auth })
  const client = new Client(
    { url: 'memory://broker', transport: () => broker.connect() },
    { auth: scramSha256({ username: 'user', password: 'pencil' }), reconnect: false },
  )
  await client.connect()
  expect(broker.clients.size).toBe(1)
  for (let count = 0; count < 3; count += 1) await client.reauthenticate()
  const subscription = await client.subscribe('a')
  await client.publish('a', 'x')
  expect((await subscription.next())?.text()).toBe('x')
  expect(broker.violations).toEqual([])
  client.destroy()
})

const fails = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'password' })

function prepared(text: string): unknown {
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
  expect(prepared('\u0007')).toEqual(fails)
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
    expect(prepared(`a${character}b`), `U+${character.codePointAt(0)?.toString(16)}`).toEqual(fails)
})

it('what is left may not be nothing', () => {
  for (const text of ['', '\u00ad', '\ufeff\u200b']) expect(prepared(text)).toEqual(fails)
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
