/**
 * The modules of the dashboard, for tests: they are JavaScript, so what they hold is declared here, as far as the tests look at it.
 */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../fixture.js'

/** What the dashboard sees of a message. */
export interface Message {
  readonly topic: string
  readonly payload: Uint8Array
  readonly payloadLength: number
  readonly qos: number
  readonly retain: boolean
  readonly properties: { readonly userProperties?: readonly (readonly [string, string])[]; readonly contentType?: string }
  json(): unknown
}

/** A message with this payload. */
export function message(topic: string, content: string | Uint8Array = '', more: Partial<Message> = {}): Message {
  const payload = typeof content === 'string' ? new TextEncoder().encode(content) : content
  const json = (): unknown => JSON.parse(new TextDecoder().decode(payload))
  return { topic, payload, payloadLength: payload.length, qos: 0, retain: false, properties: {}, json, ...more }
}

export interface Entry {
  readonly topic: string
  readonly name: string
  readonly count: number
  readonly rate: number
  readonly at: number
  readonly qos: number
  readonly retain: boolean
  readonly value: string
}

export interface Topics {
  readonly entries: ReadonlyMap<string, Entry>
  readonly gone: number
  readonly unlisted: number
  readonly waiting: number
  add(message: Message, now: number, keep?: string): boolean
  clear(): void
  digest(look: (message: Message) => void): void
  rate(now: number): void
}

export interface Series {
  readonly topic: string
  readonly values: readonly (number | null | undefined)[]
  readonly last: number | undefined
  readonly count: number
}

export interface SeriesStore {
  readonly times: readonly number[]
  readonly fields: ReadonlyMap<string, { readonly series: ReadonlyMap<string, Series>; readonly more: boolean }>
  set(topic: string, name: string, value: number): boolean
  interrupt(): void
  commit(now: number): void
  names(): readonly string[]
  clear(): void
}

export interface Kept {
  readonly message: Message
  readonly at: number
}

export interface History {
  readonly size: number
  readonly bytes: number
  add(message: Message, now: number): void
  of(topic: string): readonly Kept[]
  clear(): void
}

export interface Rates {
  readonly messages: number
  readonly perSecond: { readonly messages: number; readonly bytes: number }
  readonly times: readonly number[]
  add(messages: number, bytes: number): void
  tick(now: number): void
}

export interface Recorder {
  readonly topics: Topics
  readonly history: History
  readonly series: SeriesStore
  readonly rates: Rates
  readonly missed: number | undefined
  selected: string | undefined
  received(messages: readonly Message[], now: number): void
  tick(now: number): void
  chart(topic: string, name: string, kept: readonly (string | undefined)[]): boolean
  pause(): void
  resume(): void
  clear(): void
}

export interface TableView {
  page: number
  readonly size: number
  readonly pages: number
  readonly rows: readonly Entry[]
  sortBy(column: string): void
  search(text: string): void
  arrange(topics: Topics, still?: boolean): void
}

/** A connection that was used. */
export interface Recent {
  readonly url: string
  readonly filter: string
  readonly qos: number
  readonly username: string
}

export interface Settings {
  readonly url: string
  readonly filter: string
  readonly qos: number
  readonly publish?: string
}

interface Modules {
  'model/numbers.js': { numbersIn(message: Message): readonly (readonly [string, number])[]; readonly limits: { readonly fields: number } }
  'model/series.js': {
    SeriesStore: new () => SeriesStore
    labels(topics: readonly string[]): { readonly pattern: string; readonly names: readonly string[] }
    readonly limits: { readonly fields: number; readonly series: number; readonly points: number; readonly window: number; readonly topic: number }
  }
  'model/history.js': {
    History: new () => History
    costOf(message: Message): number
    readonly limits: { readonly perTopic: number; readonly topicBytes: number; readonly messages: number; readonly bytes: number }
  }
  'model/topics.js': {
    Topics: new () => Topics
    readonly limits: { readonly topics: number; readonly characters: number; readonly silence: number; readonly waiting: number }
  }
  'model/table.js': { TableView: new () => TableView; readonly columns: readonly string[]; readonly pageSize: number }
  'model/payload.js': {
    visible(text: string): string
    oneLine(text: string, limit?: number): string
    preview(bytes: Uint8Array): string
    formatOf(bytes: Uint8Array): 'text' | 'json' | 'hex'
    render(bytes: Uint8Array, format: 'text' | 'json' | 'hex', contentType?: string): { readonly text: string; readonly note: string }
    pieces(bytes: Uint8Array, format: 'text' | 'json' | 'hex', text: string): readonly { readonly text: string; readonly field: string | undefined }[]
    isJson(contentType?: string): boolean
    jsonProblem(text: string): string | undefined
    size(bytes: number): string
    age(milliseconds: number): string
    short(value: number): string
    readonly limits: { readonly text: number; readonly hex: number; readonly line: number }
  }
  'model/json-layout.js': { piecesOf(value: unknown): readonly { readonly text: string; readonly field: string | undefined }[] }
  'model/recent.js': {
    recentIn(text: string): readonly Recent[]
    remembered(list: readonly Recent[], settings: Recent & { readonly password?: string }): readonly Recent[]
    readonly limits: { readonly connections: number }
  }
  'model/rates.js': { Rates: new () => Rates }
  'model/recorder.js': { Recorder: new () => Recorder; readonly interval: number }
  'settings.js': { readSettings(search: string): Settings; writeSettings(settings: Settings): string; withoutSecrets(url: string): string }
  'serve.js': {
    serveDashboard(options?: {
      readonly port?: number
    }): Promise<{ readonly origin: string; address(settings?: Readonly<Record<string, string>>): string; stop(): Promise<void> }>
  }
}

/** A module of the dashboard. */
export async function dashboard<K extends keyof Modules>(name: K): Promise<Modules[K]> {
  return (await import(pathToFileURL(path.join(root, 'examples', 'dashboard', name)).href)) as Modules[K]
}
