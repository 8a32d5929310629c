/** The simulator's modules, as far as tests use them; they are JavaScript, so that somebody has to say what they hold. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ClientOptions, EndpointOptions } from '../../../src/client/api/index.js'
import type { BaseClient } from '../../../src/client/client.js'
import { root } from '../fixture.js'

/** What can be set. */
export interface Settings {
  devices: number
  rate: number
  qos: 0 | 1 | 2
  payload: string
  ramp: number
  topic: string
  template: string
}

/** Totals of a fleet. */
export type Figures = Readonly<
  Record<
    | 'devices'
    | 'connected'
    | 'sent'
    | 'acknowledged'
    | 'arrived'
    | 'open'
    | 'awaited'
    | 'lost'
    | 'twice'
    | 'unsure'
    | 'missing0'
    | 'repeated1'
    | 'heldBack'
    | 'attempts',
    number
  >
>

interface SimulatedDevice {
  readonly clientId: string
  readonly state: string
  readonly connects: number
  readonly sent: number
  readonly acknowledged: number
  readonly lastError: string | undefined
  readonly sharing: number
}

interface Clock {
  now(): number
  setTimer(callback: () => void, delay: number): () => void
}

interface Fleet {
  readonly devices: readonly SimulatedDevice[]
  readonly prefix: string
  readonly state: string
  readonly journal: { readonly entries: readonly { readonly text: string; readonly count: number }[] }
  start(settings: Partial<Settings>): Promise<void>
  set(settings: Partial<Settings>): void
  stop(): Promise<void>
  halt(device: SimulatedDevice): void
  resume(device: SimulatedDevice): void
  figures(): Figures
  arrived(message: unknown, said: unknown): void
}

interface Broker {
  readonly violations: number
  readonly links: { readonly size: number; cut(chosen: (owner: string) => boolean): number }
  mostLinks: number
  setLine(name: string): void
  close(): void
}

interface Simulator {
  readonly Fleet: new (parts: {
    makeClient: (endpoint: EndpointOptions, options: ClientOptions) => BaseClient
    broker: Broker
    clock: Clock
    name: string
    random?: () => number
  }) => Fleet
  readonly Faults: new (fleet: Fleet) => { begin(name: string): void; endAll(): void; isRunning(name: string): boolean }
  readonly faults: Readonly<Record<string, { readonly label: string; readonly lasts?: number; readonly needsMemory?: boolean }>>
  compile(template: string): (known: object) => string
  problemOf(template: string): string | undefined
  topicProblemOf(template: string): string | undefined
  filterOf(template: string, prefix: string): string
  readonly placeholders: Readonly<Record<string, unknown>>
  readonly memoryBroker: (options: { clock: Clock }) => Broker
  readonly Journal: new (
    date: () => number,
  ) => { note(text: string): void; readonly entries: readonly { readonly text: string; readonly count: number }[] }
  readonly Stream: new () => {
    readonly lost: number
    readonly awaited: number
    readonly repeated: number
    readonly unsure: number
    readonly open: number
    next(): number
    acknowledge(number: number, now: number): void
    fail(number: number, outcome: string): void
    arrive(number: number, qos: number): boolean
    giveUp(until: number): void
  }
}

/** Everything that the modules export. They import the built package: call `requireDist()` first. */
export async function simulator(): Promise<Simulator> {
  const names = ['fleet', 'faults', 'brokers', 'journal', 'ledger', 'template']
  const modules = await Promise.all(names.map((name) => import(pathToFileURL(path.join(root, 'examples', 'simulator', `${name}.js`)).href)))
  return Object.assign({}, ...modules) as Simulator
}
