/**
 * Signed URLs for AWS IoT Core: the vectors that AWS publishes, the URL as it is dialled, keys and time for each attempt, options.
 */
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type AwsCredentials, type SigV4Options, sigv4 } from '../../../src/aws/index.js'
import { pairsOf, presign } from '../../../src/aws/presign.js'
import { Client } from '../../../src/client/node.js'
import type { Endpoint } from '../../../src/client/options/index.js'
import { MqttError } from '../../../src/errors.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { common, vectors } from './vectors.js'

const keys: AwsCredentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a-secret-key' }
const endpoint = 'wss://a1b2-ats.iot.eu-west-1.amazonaws.com/mqtt'
const { signal } = new AbortController()
const date = Date.UTC(2026, 0, 2, 3, 4, 5)

async function thrown(call: () => unknown): Promise<MqttError> {
  try {
    await call()
  } catch (error) {
    if (MqttError.is(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

const signed = async (options: Partial<SigV4Options> = {}, url = endpoint): Promise<URL> =>
  (
    await sigv4({ region: 'eu-west-1', credentials: keys, now: () => date, ...options })({
      endpoint: url,
      signal,
    })
  ).url

describe('the vectors of AWS', () => {
  it.each(vectors)('$name', async ({ method, path, query, sessionToken, ...expected }) => {
    const signsToken = expected.tokenIsAddedLater !== true
    const result = await presign({
      ...common,
      method,
      path,
      query: pairsOf(query),
      sessionToken,
      signsToken,
    })
    expect(result.canonicalRequest.split('\n')).toEqual(expected.canonicalRequest)
    expect(result.stringToSign.split('\n')).toEqual(expected.stringToSign)
    expect(result.signature).toBe(expected.signature)
    const sent = new Map(pairsOf(result.query))
    expect(sent.get('X-Amz-Signature')).toBe(expected.signature)
    expect(sent.get('X-Amz-Security-Token')).toBe(sessionToken)
  })
})

describe('the URL that is dialled', () => {
  it('is the endpoint with a signed query', async () => {
    const url = await signed()
    expect(`${url.origin}${url.pathname}`).toBe('wss://a1b2-ats.iot.eu-west-1.amazonaws.com/mqtt')
    const [query = '', signature] = url.search.slice(1).split('&X-Amz-Signature=')
    expect(signature).toHaveLength(64)
    expect(pairsOf(query)).toEqual([
      ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
      ['X-Amz-Credential', 'AKIDEXAMPLE/20260102/eu-west-1/iotdevicegateway/aws4_request'],
      ['X-Amz-Date', '20260102T030405Z'],
      ['X-Amz-Expires', '300'],
      ['X-Amz-SignedHeaders', 'host'],
    ])
  })

  it('has the session token behind the signature, which is the same without it', async () => {
    const sessionToken = 'a+b/c=='
    const url = await signed({ credentials: { ...keys, sessionToken } })
    expect(url.href).toBe(`${(await signed()).href}&X-Amz-Security-Token=a%2Bb%2Fc%3D%3D`)
  })

  it('has the session token within what is signed, for any other service', async () => {
    const url = await signed({
      service: 'iotwireless',
      credentials: { ...keys, sessionToken: 'a+b' },
    })
    const [query = '', signature] = url.search.slice(1).split('&X-Amz-Signature=')
    expect(pairsOf(query)).toContainEqual(['X-Amz-Security-Token', 'a+b'])
    expect(signature).not.toBe(
      (await signed({ service: 'iotwireless' })).search.split('&X-Amz-Signature=')[1],
    )
  })

  it('keeps the query of the endpoint, in order, and replaces an earlier signature', async () => {
    const first = await signed({}, `${endpoint}?z=1&a=b%20c&!=%27`)
    const names = pairsOf(first.search).map(([name]) => name)
    expect(names.slice(0, 3)).toEqual(['!', 'X-Amz-Algorithm', 'X-Amz-Credential'])
    expect(first.search).toContain('%21=%27&')
    expect(first.searchParams.get('a')).toBe('b c')
    expect(first.searchParams.get('z')).toBe('1')
    expect((await signed({}, first.href)).href).toBe(first.href)
    expect((await signed({ expires: 60 }, first.href)).search.match(/X-Amz-Expires=\d+/g)).toEqual([
      'X-Amz-Expires=60',
    ])
  })

  it('is signed for the port too, where it is not that of the scheme', async () => {
    const plain = await signed()
    expect((await signed({}, endpoint.replace('/mqtt', ':443/mqtt'))).href).toBe(plain.href)
    expect((await signed({}, endpoint.replace('/mqtt', ':8443/mqtt'))).search).not.toBe(
      plain.search,
    )
  })
})

describe('each attempt', () => {
  it('asks for keys and time anew, and hands the signal on', async () => {
    let turn = 0
    const asked: unknown[] = []
    const sign = sigv4({
      region: 'eu-west-1',
      credentials: async (context) => {
        asked.push(context.signal)
        turn += 1
        return { ...keys, accessKeyId: `AK${turn}`, expiration: new Date() }
      },
      now: () => new Date(date + turn * 1000),
    })
    const urls = [await sign({ endpoint, signal }), await sign({ endpoint, signal })].map(
      ({ url }) => url.searchParams,
    )
    expect(urls.map((query) => query.get('X-Amz-Credential')?.split('/')[0])).toEqual([
      'AK1',
      'AK2',
    ])
    expect(urls.map((query) => query.get('X-Amz-Date'))).toEqual([
      '20260102T030406Z',
      '20260102T030407Z',
    ])
    expect(asked).toEqual([signal, signal])
  })

  it('of a client is signed anew, and no event shows the signature or the token', async () => {
    const broker = new MemoryBroker()
    const dialled: URLSearchParams[] = []
    const transport = (at: Endpoint) => {
      dialled.push(new URL(String((at as { url: unknown }).url)).searchParams)
      return broker.connect()
    }
    const credentials = () => ({ ...keys, sessionToken: `a-token-${dialled.length}` })
    const now = () => date + dialled.length * 1000
    const client = new Client(
      { url: endpoint, transport },
      {
        ...{ clientId: 'c', reconnect: { backoff: () => 1 } },
        credentials: sigv4({ region: 'eu-west-1', credentials, now }),
      },
    )
    const told: unknown[] = []
    for (const type of ['state', 'connect', 'disconnect', 'reconnecting'] as const)
      client.on(type, (event) => told.push([type, event]))
    await client.connect()
    const again = new Promise((resolve) => client.on('connect', resolve, { once: true }))
    broker.disconnect('c', 0x8b)
    await again
    await client.disconnect()
    const sent = (name: string) => dialled.map((query) => query.get(`X-Amz-${name}`))
    expect(sent('Date')).toEqual(['20260102T030405Z', '20260102T030406Z'])
    expect(sent('Security-Token')).toEqual(['a-token-0', 'a-token-1'])
    expect(new Set(sent('Signature')).size).toBe(2)
    for (const secret of ['a-secret-key', 'a-token', 'X-Amz'])
      expect(JSON.stringify(told)).not.toContain(secret)
  })

  it('takes the clock where no time is given', async () => {
    const before = Date.now() - 1000
    const stamp = (await signed({ now: undefined })).searchParams.get('X-Amz-Date') ?? ''
    const parts =
      /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp)?.slice(1).map(Number) ?? []
    const [year = 0, month = 0, day, hour, minute, second] = parts
    const time = Date.UTC(year, month - 1, day, hour, minute, second)
    expect(time).toBeGreaterThanOrEqual(before)
    expect(time).toBeLessThanOrEqual(Date.now())
  })

  it('fails with what the function threw', async () => {
    const error = new Error('no keys today')
    await expect(signed({ credentials: () => Promise.reject(error) })).rejects.toBe(error)
  })

  it.each([
    ['nothing', undefined, 'credentials.accessKeyId'],
    ['no secret', { accessKeyId: 'A' }, 'credentials.secretAccessKey'],
    ['an empty secret', { accessKeyId: 'A', secretAccessKey: '' }, 'credentials.secretAccessKey'],
    ['a token that is no text', { ...keys, sessionToken: 5 }, 'credentials.sessionToken'],
  ])('fails by name for %s', async (_name, given, option) => {
    const error = await thrown(() => signed({ credentials: () => given as never }))
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it('fails for a time that is none', async () => {
    expect(await thrown(() => signed({ now: () => new Date(Number.NaN) }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'sigv4.now()',
    })
    expect(await thrown(() => signed({ now: () => 9e15 }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
  })

  it('fails for an endpoint without WebSocket', async () => {
    expect(await thrown(() => signed({}, 'mqtts://broker.example'))).toMatchObject({
      code: 'ERR_INVALID_BROKER_URL',
      option: 'url',
    })
  })
})

describe('options', () => {
  const made = (options: unknown) => () => sigv4(options as SigV4Options)

  it.each([
    ['nothing', undefined, 'sigv4.region'],
    ['no object', 'eu-west-1', 'sigv4'],
    ['no region', { credentials: keys }, 'sigv4.region'],
    ['an empty region', { region: '', credentials: keys }, 'sigv4.region'],
    ['no keys', { region: 'r' }, 'sigv4.credentials'],
    [
      'keys without a secret',
      { region: 'r', credentials: { accessKeyId: 'A' } },
      'credentials.secretAccessKey',
    ],
    ['an empty service', { region: 'r', credentials: keys, service: '' }, 'sigv4.service'],
    ['no time to live', { region: 'r', credentials: keys, expires: 0 }, 'sigv4.expires'],
    ['more than a week', { region: 'r', credentials: keys, expires: 604_801 }, 'sigv4.expires'],
    ['a clock that is a number', { region: 'r', credentials: keys, now: 5 }, 'sigv4.now'],
    ['an unknown option', { region: 'r', credentials: keys, expiresIn: 5 }, 'sigv4.expiresIn'],
  ])('%s: ERR_INVALID_OPTION at once, by name', async (_name, options, option) => {
    expect(await thrown(made(options))).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it('no WebCrypto: ERR_UNSUPPORTED_OPTION', async () => {
    const own = Object.getOwnPropertyDescriptor(globalThis, 'crypto')
    Object.defineProperty(globalThis, 'crypto', { value: {}, configurable: true })
    const error = await thrown(made({ region: 'r', credentials: keys }))
    if (own) Object.defineProperty(globalThis, 'crypto', own)
    expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'credentials' })
  })

  it('no error and no inspection shows a secret', async () => {
    const sign = sigv4({ region: 'r', credentials: { ...keys, sessionToken: 'a-session-token' } })
    const error = await thrown(() => sign({ endpoint: 'mqtt://broker.example', signal }))
    const shown = [
      inspect(sign),
      JSON.stringify({ sign }),
      String(sign),
      inspect(error),
      JSON.stringify(error),
    ].join()
    for (const secret of ['a-secret-key', 'a-session-token']) expect(shown).not.toContain(secret)
  })
})
