/** Secrets that can be recognised in whatever form they come out, and a listener to everything that a client reports. */
import { inspect } from 'node:util'
import type { BaseClient } from '../../../src/client/client.js'
import type { Logger } from '../../../src/client/options/index.js'
import { eventNames } from './event-names.js'

/** One secret for each way in, so that a leak names its way. */
export const secrets = {
  username: 'canary01UserOption',
  password: 'canary02PassOption',
  urlUser: 'canary03UserUrl',
  urlPassword: 'canary04PassUrl',
  query: 'canary05QueryUrl',
  header: 'canary06Header',
  givenUsername: 'canary07UserGiven',
  givenPassword: 'canary08PassGiven',
  givenQuery: 'canary09QueryGiven',
  givenHeader: 'canary10HeaderGiven',
  authData: 'canary11AuthData',
  serverData: 'canary12ServerData',
  scramUser: 'canary13ScramUser',
  scramPassword: 'canary14ScramPass',
  wrong: 'canary15WrongValue',
} as const

export const eventTypes = [...eventNames, 'packet'] as const

/** A text in all forms in which careless code prints it: itself, hexadecimal, decimal, and base64 whatever stands before it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  // Base64 of a text in the middle of others: without the characters at both ends, which depend on its neighbours.
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  )
  return [secret.toLowerCase(), bytes.toString('hex'), [...bytes].join(','), ...base64]
}

const forms = Object.entries(secrets).map(([name, secret]) => [name, formsOf(secret)] as const)

export function secretsIn(text: string): string[] {
  const dense = text.replace(/[\s-]+/g, '')
  const lower = dense.toLowerCase()
  return forms
    .filter(([, shapes]) =>
      shapes.some((shape, index) => (index < 3 ? lower : dense).includes(shape)),
    )
    .map(([name]) => name)
}

/** All bytes that can be reached from a value, as text. */
function bytesIn(value: unknown, seen: Set<unknown>): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString('latin1')
  if (typeof value !== 'object' || value === null || seen.has(value)) return ''
  seen.add(value)
  const inner = value instanceof Map || value instanceof Set ? [...value.entries()].flat() : []
  const own = Object.getOwnPropertyNames(value).map(
    (name) => (value as Record<string, unknown>)[name],
  )
  return [...inner, ...own].map((each) => bytesIn(each, seen)).join('\n')
}

function json(value: unknown): string {
  try {
    return `${JSON.stringify(value)}${value instanceof Error ? JSON.stringify(value, Object.getOwnPropertyNames(value)) : ''}`
  } catch {
    // Circular: `inspect` shows it.
    return ''
  }
}

/** Everything that can be said about a value. */
export function told(value: unknown): string {
  const parts: string[] = []
  for (
    let each: unknown = value;
    each !== undefined && parts.length < 100;
    each = each instanceof Error ? each.cause : undefined
  ) {
    const options = {
      depth: 10,
      showHidden: true,
      getters: true,
      maxArrayLength: 100_000,
      maxStringLength: 1e6,
    }
    parts.push(String(each), json(each), inspect(each, options), bytesIn(each, new Set()))
    if (each instanceof Error) parts.push(each.message, each.stack ?? '')
    if (each instanceof AggregateError) parts.push(...each.errors.map(told))
  }
  return parts.join('\n')
}

/** Hears everything, and keeps what should not have been said. */
export class Listener {
  /** Where a secret came out, and which. */
  readonly leaks: string[] = []
  /** Kinds of things heard, with how often. */
  readonly heard = new Map<string, number>()

  hear(kind: string, value: unknown): void {
    this.heard.set(kind, (this.heard.get(kind) ?? 0) + 1)
    for (const name of secretsIn(told(value))) this.leaks.push(`${name} in ${kind}`)
  }

  get logger(): Required<Logger> {
    const hear = (line: string): void => this.hear('log', line)
    return { debug: hear, info: hear, warn: hear, error: hear }
  }

  /** Listens to every event of a client; each event makes the client itself speak too. */
  attend(client: BaseClient): void {
    for (const type of eventTypes) {
      client.on(type, (event) => {
        this.hear(type, event)
        this.hear('client', client)
      })
    }
    // What is logged of a listener that fails is text like any other.
    client.on('packet', () => {
      throw new Error('a listener')
    })
  }

  /** Everything that a client can be asked. */
  interrogate(client: BaseClient): void {
    const { state, clientId, negotiated, outbound } = client
    for (const each of [client, state, clientId, negotiated, outbound, client.stats()])
      this.hear('client', each)
  }

  /** Waits for a promise, hearing what it comes to. */
  async follow<T>(kind: string, promise: Promise<T>): Promise<T | undefined> {
    try {
      const value = await promise
      this.hear(kind, value)
      return value
    } catch (error) {
      this.hear(kind, error)
      return undefined
    }
  }
}
