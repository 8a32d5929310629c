/**
 * Clients of `mqwire/compat` with a broker of their own, and a link to it that a test can cut. What they tell is kept in order.
 */
import { createServer, connect as dial, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import {
  connect,
  type IClientOptions,
  type MqttClient,
  type MqttClientEventCallbacks,
} from '../../../src/compat/index.js'
import { startAedes } from '../../real/brokers.js'
import { eventually } from '../../real/waiting.js'
import { closed, listening } from '../../support/servers.js'

/** Done when the test is over, the last first. */
export function atEnd(end: () => unknown): void {
  onTestFinished(async () => {
    await end()
  })
}

export const soon = { reconnectPeriod: 20 }

/** The address of a broker for this test. */
export async function tcp(): Promise<string> {
  const started = await startAedes()
  atEnd(() => started.stop())
  return started.urls.TCP as string
}

/** A way to a broker that can be cut, and closed. */
export interface Way {
  readonly port: number
  readonly url: string
  /** Connections so far. */
  readonly count: number
  /** Cuts what is open; the next one may come. */
  cut(): void
  /** Nobody listens any more. */
  shut(): Promise<void>
  /** Somebody does again. */
  open(): Promise<void>
}

export async function wayTo(url: string): Promise<Way> {
  const sockets = new Set<Socket>()
  let count = 0
  const target = Number(new URL(url).port)
  const make = () =>
    createServer((near) => {
      count += 1
      const far = dial(target, '127.0.0.1')
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from)
        from
          .on('error', () => undefined)
          .on('close', () => {
            sockets.delete(from)
            to.destroy()
          })
        from.pipe(to)
      }
    })
  let server = make()
  const port = await listening(server)
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const shut = async () => {
    const all = closed(server)
    cut()
    await all
  }
  atEnd(() => (server.listening ? shut() : undefined))
  return {
    port,
    url: `mqtt://127.0.0.1:${port}`,
    get count() {
      return count
    },
    cut,
    shut,
    async open() {
      server = make()
      await listening(server, port)
    },
  }
}

/** Every event by its name, as it was told. */
export type Told = readonly [event: keyof MqttClientEventCallbacks, ...given: unknown[]]

const events = [
  'connect',
  'message',
  'disconnect',
  'error',
  'close',
  'end',
  'reconnect',
  'offline',
  'outgoingEmpty',
] as const

export function recorded(client: MqttClient): Told[] {
  const told: Told[] = []
  for (const event of events)
    client.on(event, ((...given: unknown[]) => told.push([event, ...given])) as never)
  return told
}

/** Names of what was told, but for this one. */
export const namesIn = (told: readonly Told[], without?: string): string[] =>
  told.map(([event]) => event as string).filter((event) => event !== without)

/** A client that is ended after the test, and what it tells. */
export function started(url: string | IClientOptions, options?: IClientOptions) {
  const client = connect(url, options)
  atEnd(() => new Promise<void>((resolve) => client.end(true, () => resolve())))
  return { client, told: recorded(client) }
}

/** Waits until an event was told so many times. */
export async function toldOf(told: readonly Told[], event: string, times = 1): Promise<void> {
  await eventually(
    () => namesIn(told).filter((name) => name === event).length >= times,
    `${event} in [${namesIn(told)}]`,
  )
}

export async function up(url: string | IClientOptions, options?: IClientOptions) {
  const made = started(url, options)
  await toldOf(made.told, 'connect')
  return made
}

/** Packets that leave from now on. */
export function sentBy(client: MqttClient): { readonly cmd: string }[] {
  const sent: { readonly cmd: string }[] = []
  client.on('packetsend', (packet) => sent.push(packet))
  return sent
}

interface Manners {
  /** Sent behind CONNACK. */
  readonly behind?: Uint8Array
  /** Ends the connection, in place of an answer. */
  readonly hangUp?: boolean
}

/** Starts a server that answers every CONNECT in one way, and no other packet: `code` is that of CONNACK; undefined: no answer. */
export async function refusing(code: number | undefined, { behind, hangUp = false }: Manners = {}) {
  let count = 0
  const sockets = new Set<{ destroy(): unknown }>()
  const server = createServer((socket) => {
    count += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', (bytes) => {
      if (hangUp) socket.destroy()
      if (code === undefined || hangUp) return
      // The protocol level stands behind the name.
      const isFive = bytes.indexOf(Buffer.from([0x4d, 0x51, 0x54, 0x54, 5])) >= 0
      socket.write(isFive ? Uint8Array.of(0x20, 3, 0, code, 0) : Uint8Array.of(0x20, 2, 0, code))
      if (behind !== undefined) socket.write(behind)
      if (code !== 0) socket.end()
    })
  })
  const port = await listening(server)
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    return closed(server)
  })
  return { url: `mqtt://127.0.0.1:${port}`, count: () => count }
}
