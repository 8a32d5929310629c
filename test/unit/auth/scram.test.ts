/** The client's side of SCRAM-SHA-256: the published vector, every way in which a server can be wrong, and what is never said aloud. */
import { inspect } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type ScramOptions, scramSha256 } from '../../../src/auth/index.js'
import { MqttError } from '../../../src/errors.js'
import { bytes, context, text, thrown, vector } from './exchange.js'

const { username, password, nonce } = vector
const made = (rest: Partial<ScramOptions> = {}) =>
  scramSha256({ username, password, nonce, ...rest })

function started(rest: Partial<ScramOptions> = {}) {
  const [scram, ctx] = [made(rest), context()]
  scram.start(ctx)
  return { scram, ctx }
}

const fails = async (call: () => unknown): Promise<void> =>
  expect(await thrown(call)).toMatchObject({ code: 'ERR_AUTH_FAILED' })

async function proven() {
  const { scram, ctx } = started()
  await scram.continue(bytes(vector.serverFirst), ctx)
  return { scram, ctx }
}

afterEach(() => {
  vi.unstubAllGlobals()
})

describe('the exchange of RFC 7677', () => {
  it('byte by byte, the signature with the success', async () => {
    const [scram, ctx] = [made(), context()]
    expect(scram.method).toBe('SCRAM-SHA-256')
    expect(text(scram.start(ctx))).toBe(vector.clientFirst)
    expect(text(await scram.continue(bytes(vector.serverFirst), ctx))).toBe(vector.clientFinal)
    expect(scram.success(bytes(vector.serverFinal), ctx)).toBeUndefined()
  })

  it('the signature in an AUTH packet before the success: nothing is answered, and the success needs no data', async () => {
    const { scram, ctx } = await proven()
    expect(await scram.continue(bytes(vector.serverFinal), ctx)).toBeUndefined()
    expect(scram.success(undefined, ctx)).toBeUndefined()
  })

  it('the signature twice is checked twice', async () => {
    const { scram, ctx } = await proven()
    await scram.continue(bytes(vector.serverFinal), ctx)
    await fails(() => scram.success(bytes('v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='), ctx))
  })

  it.each([
    ['optional extensions behind the challenge', `${vector.serverFirst},x=whatever,Y==`],
    [
      'visible characters in the nonce, the first and the last of ASCII among them,',
      vector.serverFirst.replace('%hv', '!~'),
    ],
    ['the most rounds', vector.serverFirst.replace('4096', '1000000')],
  ])('%s are taken', async (_what, challenge) => {
    const { scram, ctx } = started()
    expect(text(await scram.continue(bytes(challenge), ctx))).toMatch(/^c=biws,r=.*,p=[\w+/]{43}=$/)
  })

  it('optional extensions behind the signature are ignored', async () => {
    const { scram, ctx } = await proven()
    expect(scram.success(bytes(`${vector.serverFinal},x=whatever`), ctx)).toBeUndefined()
  })

  it('a comma and an equals sign in a user name have other spellings; the name is prepared first', () => {
    expect(text(made({ username: 'a,b=c' }).start(context()))).toBe(`n,,n=a=2Cb=3Dc,r=${nonce}`)
    expect(text(made({ username: 'I\u00adX\u2168' }).start(context()))).toBe(`n,,n=IXIX,r=${nonce}`)
    // U+FE50 becomes a comma only when it is prepared.
    expect(text(made({ username: 'a\ufe50b' }).start(context()))).toBe(`n,,n=a=2Cb,r=${nonce}`)
  })

  it('the password is prepared: two spellings of it give one proof', async () => {
    const proofs = ['pencil', 'p\u00adencil', '\uff50encil'].map(async (spelling) => {
      const { scram, ctx } = started({ password: spelling })
      return text(await scram.continue(bytes(vector.serverFirst), ctx))
    })
    expect(new Set(await Promise.all(proofs))).toEqual(new Set([vector.clientFinal]))
  })
})

describe('nonces', () => {
  const nonceOf = (data: Uint8Array) => /r=(.*)$/.exec(text(data) ?? '')?.[1]

  it('each exchange has its own, of at least 128 bits', () => {
    const scram = scramSha256({ username, password })
    const nonces = Array.from({ length: 100 }, () => nonceOf(scram.start(context())) ?? '')
    expect(new Set(nonces).size).toBe(100)
    for (const each of nonces) expect(each).toMatch(/^[\w+/]{24}$/)
  })

  it('a function is asked for every exchange', () => {
    let count = 0
    const scram = made({ nonce: () => `n${++count}` })
    expect([scram.start(context()), scram.start(context())].map(nonceOf)).toEqual(['n1', 'n2'])
  })

  it.each(['', 'a,b', 'a b', 'ä', 'a\u0000', 'x'.repeat(1025), 5])(
    'is refused: %j',
    async (bad) => {
      expect(await thrown(() => made({ nonce: bad as string }))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'nonce',
      })
      const scram = made({ nonce: () => bad as string })
      expect(await thrown(() => scram.start(context()))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'nonce',
      })
    },
  )
})

describe('a server that is wrong is refused', () => {
  const { serverFirst } = vector
  it.each([
    ['nonce that is not ours', serverFirst.replace('rOpr', 'rOpX')],
    ['nonce with nothing of its own', `r=${nonce},s=${vector.salt},i=4096`],
    ['nonce in which ours comes later', serverFirst.replace('r=', 'r=x')],
    ['nonce with a control character', serverFirst.replace('%hv', '\u0007')],
    ['nonce outside ASCII', serverFirst.replace('%hv', 'ä')],
    ['iterations below the minimum', serverFirst.replace('4096', '4095')],
    ['no iterations', serverFirst.replace('4096', '0')],
    ['negative iterations', serverFirst.replace('4096', '-4096')],
    ['iterations above the maximum', serverFirst.replace('4096', '1000001')],
    ['iterations beyond any number', serverFirst.replace('4096', '9'.repeat(400))],
    ['iterations with a leading zero', serverFirst.replace('4096', '04096')],
    ['iterations in another notation', serverFirst.replace('4096', '1e4')],
    ['iterations with a space', serverFirst.replace('4096', ' 4096')],
    ['no iterations attribute', serverFirst.replace(',i=4096', '')],
    ['no salt', serverFirst.replace(/s=[^,]*/, 's=')],
    ['no salt attribute', serverFirst.replace(/,s=[^,]*/, '')],
    ['salt that is no base64', serverFirst.replace(/s=[^,]*/, 's=****')],
    ['salt without padding', serverFirst.replace('gQ==', 'gQ')],
    ['attributes in another order', `s=${vector.salt},r=${nonce}x,i=4096`],
    ['an attribute twice', serverFirst.replace(',s=', ',r=x,s=')],
    ['mandatory extension m=', `m=channel,${serverFirst}`],
    ['mandatory extension alone', 'm=x'],
    ['extension without a value', `${serverFirst},x=`],
    ['a comma too many', `${serverFirst},`],
    ['an error', 'e=unknown-user'],
    ['an error without a name', 'e='],
    ['the last message first', vector.serverFinal],
    ['words', 'hello'],
    ['nothing', ''],
    ['more than anybody needs', `${serverFirst},x=${'x'.repeat(5000)}`],
  ])('challenge: %s', async (_what, challenge) => {
    const { scram, ctx } = started()
    const error = await thrown(() => scram.continue(bytes(challenge), ctx))
    expect(error).toBeInstanceOf(MqttError)
    expect(error).toMatchObject({ code: 'ERR_AUTH_FAILED', fault: 'remote' })
    // The exchange is over, whatever comes now.
    await fails(() => scram.continue(bytes(serverFirst), ctx))
    await fails(() => scram.success(bytes(vector.serverFinal), ctx))
  })

  it.each([
    ['signature of somebody else', 'v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='],
    ['signature that is cut', 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A=='],
    ['signature that goes on', 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4A'],
    ['empty signature', 'v='],
    ['signature that is no base64', 'v=!!!!'],
    ['another attribute', vector.serverFinal.replace('v=', 'w=')],
    ['an error', 'e=invalid-proof'],
    ['mandatory extension m=', `m=x,${vector.serverFinal}`],
    ['its first message again', serverFirst],
  ])('last message: %s, with the success or before it', async (_what, last) => {
    const [early, late] = [await proven(), await proven()]
    for (const call of [
      () => early.scram.continue(bytes(last), early.ctx),
      () => late.scram.success(bytes(last), late.ctx),
    ])
      expect(await thrown(call)).toMatchObject({ code: 'ERR_AUTH_FAILED', fault: 'remote' })
    await fails(() => early.scram.success(undefined, early.ctx))
    await fails(() => early.scram.success(bytes(vector.serverFinal), early.ctx))
  })

  it('an error that the server names is told, what it adds is not', async () => {
    const { scram, ctx } = await proven()
    const message = 'SCRAM-SHA-256: the server says invalid-proof'
    expect(await thrown(() => scram.success(bytes('e=invalid-proof'), ctx))).toMatchObject({
      message,
    })
    const second = await proven()
    const error = (await thrown(() =>
      second.scram.success(bytes('e=Line\nbreak'), second.ctx),
    )) as Error
    expect(error.message).toBe('SCRAM-SHA-256: the server says other-error')
  })

  it('a success that nothing was proved for', async () => {
    const [scram, ctx] = [made(), context()]
    for (const data of [undefined, bytes(vector.serverFinal)])
      await fails(() => scram.success(data, ctx))
    scram.start(ctx)
    for (const data of [undefined, bytes('v=')]) {
      scram.start(ctx)
      await fails(() => scram.success(data, ctx))
    }
    const { scram: other, ctx: its } = await proven()
    for (const data of [undefined, new Uint8Array(0)]) await fails(() => other.success(data, its))
  })

  it('data that is none, and bytes that are no UTF-8', async () => {
    for (const data of [undefined, new Uint8Array(0), Uint8Array.of(0x72, 0x3d, 0xff)]) {
      const { scram, ctx } = started()
      await fails(() => scram.continue(data, ctx))
    }
  })

  it('one challenge too many', async () => {
    const { scram, ctx } = await proven()
    await scram.continue(bytes(vector.serverFinal), ctx)
    await fails(() => scram.continue(bytes(vector.serverFinal), ctx))
  })

  it('a second success', async () => {
    const { scram, ctx } = await proven()
    scram.success(bytes(vector.serverFinal), ctx)
    for (const data of [bytes(vector.serverFinal), undefined])
      await fails(() => scram.success(data, ctx))
  })

  it('a mandatory extension is named as the reason', async () => {
    const { scram, ctx } = started()
    const error = await thrown(() => scram.continue(bytes(`m=x,${serverFirst}`), ctx))
    expect(error).toMatchObject({
      message: 'SCRAM-SHA-256: the server demands an extension that is not known',
    })
  })

  it('two challenges at once: one is answered', async () => {
    const { scram, ctx } = started()
    const answers = await Promise.allSettled([
      scram.continue(bytes(serverFirst), ctx),
      scram.continue(bytes(serverFirst), ctx),
    ])
    expect(answers.map((answer) => answer.status)).toEqual(['fulfilled', 'rejected'])
  })
})

describe('several exchanges of one value', () => {
  it('two clients at a time do not meet', async () => {
    const [one, two] = [context(), context()]
    const scram = made({ nonce: undefined })
    const first = text(scram.start(one))?.split('r=')[1] ?? ''
    const second = text(scram.start(two))?.split('r=')[1] ?? ''
    const challenge = (own: string) => bytes(`r=${own}server,s=${vector.salt},i=4096`)
    expect(text(await scram.continue(challenge(second), two))).toContain(`r=${second}server,`)
    expect(text(await scram.continue(challenge(first), one))).toContain(`r=${first}server,`)
  })

  it('an attempt begins anew, whatever became of the one before; a re-authentication too', async () => {
    const scram = made()
    for (const ctx of [context(), context()]) {
      scram.start(ctx)
      await scram.continue(bytes(vector.serverFirst), ctx)
      scram.start(ctx)
      expect(text(await scram.continue(bytes(vector.serverFirst), ctx))).toBe(vector.clientFinal)
      scram.success(bytes(vector.serverFinal), ctx)
    }
    await fails(() => scram.continue(bytes(vector.serverFirst), context()))
  })
})

describe('what is never said', () => {
  const secrets = /canary/

  function told(value: unknown): string {
    const own =
      value instanceof Error ? JSON.stringify(value, Object.getOwnPropertyNames(value)) : ''
    return [
      String(value),
      `${JSON.stringify(value)}`,
      own,
      inspect(value, { depth: 20, showHidden: true, getters: true }),
    ].join('\n')
  }

  it('user name and password: the value is redacted however it is looked at', () => {
    const scram = scramSha256({ username: 'canary-user', password: 'canary-password' })
    const output = told({ auth: scram, list: [scram] }) + told(scram)
    expect(output).not.toMatch(secrets)
    for (const look of [String(scram), JSON.stringify(scram), inspect(scram)])
      expect(look).toContain('[redacted]')
    expect(Object.entries(scram)).toEqual([['method', 'SCRAM-SHA-256']])
  })

  it('in any error', async () => {
    const errors: unknown[] = []
    for (const last of ['v=AAAA', 'e=invalid-proof', 'x']) {
      const [scram, ctx] = [
        scramSha256({ username: 'canary-user', password: 'canary-password', nonce }),
        context(),
      ]
      scram.start(ctx)
      await scram.continue(bytes(vector.serverFirst), ctx)
      errors.push(await thrown(() => scram.success(bytes(last), ctx)))
    }
    errors.push(await thrown(() => scramSha256({ username: 'canary\u0000', password })))
    errors.push(await thrown(() => scramSha256({ username, password: 'canary\u0000' })))
    errors.push(
      await thrown(() =>
        scramSha256({ username: { name: 'canary' } as unknown as string, password }),
      ),
    )
    for (const error of errors) expect(told(error)).not.toMatch(secrets)
  })
})

describe('options', () => {
  it.each([
    ['username', { username: '' }],
    ['username', { username: undefined }],
    ['username', { username: 'a\u0007' }],
    ['password', { password: '' }],
    ['password', { password: '\u00ad' }],
    ['password', { password: 5 }],
    ['password', { password: 'a\ud800' }],
  ])('%s refused: %j', async (option, wrong) => {
    expect(await thrown(() => made(wrong as Partial<ScramOptions>))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option,
    })
  })

  it.each([undefined, null, 'user'])('no object: %j', async (wrong) => {
    expect(await thrown(() => scramSha256(wrong as unknown as ScramOptions))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
  })

  it('a page without WebCrypto is told so at once', async () => {
    vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
    expect(await thrown(() => made())).toMatchObject({
      code: 'ERR_UNSUPPORTED_OPTION',
      option: 'auth',
    })
  })
})
