/** What the suites of SCRAM share: bytes as text, contexts, the vector of RFC 7677. */
import type { ScramContext } from '../../../src/auth/scram.js'

const utf8 = new TextEncoder()

/** A context as the client makes one: a signal of its own. */
export function context(): ScramContext {
  return { signal: new AbortController().signal }
}

export function bytes(text: string): ReturnType<Uint8Array['slice']> {
  return utf8.encode(text)
}

export function text(data: Uint8Array | undefined): string | undefined {
  return data === undefined ? undefined : new TextDecoder().decode(data)
}

/** What a call throws or rejects with, as a promise that fulfils; itself rejects when nothing went wrong. */
export async function thrown(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new Error('it was to fail')
}

/** RFC 7677, section 3. */
export const vector = {
  username: 'user',
  password: 'pencil',
  nonce: 'rOprNGfwEbeRWgbNEkqO',
  serverNonce: '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  salt: 'W22ZaJ0SNY7soEsUEjb6gQ==',
  clientFirst: 'n,,n=user,r=rOprNGfwEbeRWgbNEkqO',
  serverFirst:
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
  clientFinal:
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
  serverFinal: 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
} as const
