/** Runs programs with Node and its like, in a project that has nothing but the installed package, and gives what they print. */
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { WebSocketServer } from 'ws'
import { MemoryBroker, type MemoryBrokerOptions } from '../../../src/testing/node.js'
import { selfSigned } from '../../support/certificates.js'
import { freePorts, listening } from '../../support/servers.js'
import { run, writeFiles } from '../fixture.js'

export interface Servers {
  /** The text with the ports that are open, in place of the fixed ones. */
  readonly real: (text: string) => string
  /** The text with the fixed ports, in place of those that are open. */
  readonly masked: (text: string) => string
  readonly stop: () => Promise<void>
}

const everything: MemoryBrokerOptions = {
  authorizePublish: (_client, { topic }) => !topic.startsWith('denied/'),
  authorizeSubscribe: (_client, { filter }) => !filter.startsWith('denied/'),
  faults: [
    {
      packet: 'publish',
      direction: 'out',
      nth: 'every',
      clientId: 'leaving',
      action: {
        replace: () =>
          ({
            type: 'disconnect',
            reasonCode: 0x8b,
            properties: { reasonString: 'back in a minute' },
          }) as never,
      },
    },
    { packet: 'publish', direction: 'in', nth: 'every', clientId: 'gone', action: 'close-before' },
    {
      packet: 'suback',
      direction: 'out',
      nth: 'every',
      clientId: 'lowered',
      action: { reasonCode: 0 },
    },
  ],
}

const refusing: MemoryBrokerOptions = {
  authenticate: ({ clientId }) => {
    const reasonCode = Number(clientId.split('-')[1])
    const moved = reasonCode === 0x9c || reasonCode === 0x9d
    return {
      reasonCode,
      properties: moved
        ? { serverReference: 'other.example' }
        : { reasonString: 'the words of the server' },
    }
  },
}

const little: MemoryBrokerOptions = {
  maximumQoS: 0,
  retainAvailable: false,
  maximumPacketSize: 128,
  sharedSubscriptionAvailable: false,
  wildcardSubscriptionAvailable: false,
  subscriptionIdentifierAvailable: false,
}

export async function startServers(): Promise<Servers> {
  const running = new Running()
  await running.broker(everything, 1883, 8083)
  await running.broker(refusing, 1884, 8084)
  await running.broker(little, 1885, 8086)
  const moved = { location: '/mqtt' }
  const pages = createHttpServer(({ url }, response) =>
    response.writeHead(url === '/moved' ? 301 : 404, moved).end(),
  )
  await running.server(pages, 8080)
  const bare = createHttpServer()
  const sockets = new WebSocketServer({ server: bare, handleProtocols: () => false })
  running.ends.push(() => sockets.close())
  await running.server(bare, 8085)
  const secure = createTlsServer({ ...selfSigned('localhost') }, () => {})
  await running.server(
    secure.on('tlsClientError', () => {}),
    8883,
  )
  const silent = createServer(() => {})
  await running.server(silent, 1887)
  const ending = createServer((socket) => socket.once('data', () => socket.end()))
  await running.server(ending, 1888)
  const [one = 0, other = 0] = await freePorts(2)
  running.ports.push([1998, one], [1999, other])
  return running
}

/** What was started: ports as the transcript has them, and as they are. */
class Running implements Servers {
  readonly ports: [fixed: number, open: number][] = []
  readonly ends: (() => unknown)[] = []

  readonly real = (text: string): string => swapped(text, this.ports)
  readonly masked = (text: string): string =>
    swapped(
      text,
      this.ports.map(([fixed, open]) => [open, fixed] as const),
    )

  async broker(options: MemoryBrokerOptions, tcp: number, ws: number): Promise<void> {
    const made = new MemoryBroker(options)
    this.ends.push(() => made.close())
    const { urls } = await made.serve({ tcp: 0, ws: 0 })
    const [tcpPort = 0, wsPort = 0] = urls.map((url) => Number(new URL(url).port))
    this.ports.push([tcp, tcpPort], [ws, wsPort])
  }

  async server(made: Server, port: number): Promise<void> {
    this.ports.push([port, await listening(made)])
    made.on('connection', (socket) => {
      socket.on('error', () => {})
      this.ends.push(() => socket.destroy())
    })
    this.ends.push(() => made.close())
  }

  async stop(): Promise<void> {
    for (const end of this.ends) await end()
  }
}

function swapped(text: string, pairs: readonly (readonly [from: number, to: number])[]): string {
  const known = new Map(pairs)
  return text.replace(/(?<=127\.0\.0\.1:)\d+/g, (port) => String(known.get(Number(port)) ?? port))
}

/** A program that runs modules: its file, and what stands before the name of the module. */
interface Runner {
  readonly executable: string
  readonly flags: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

const thisNode: Runner = { executable: process.execPath, flags: [] }

/** What a program printed, on both streams, with everything masked that differs from one machine, run or version to the next. */
export async function printed(
  folder: string,
  servers: Servers,
  name: string,
  code: string,
  { executable, flags, env }: Runner = thisNode,
): Promise<string> {
  await writeFiles(folder, { [name]: servers.real(code) })
  const { output } = await run(executable, [...flags, name], folder, 30_000, {
    ...process.env,
    ...env,
  })
  return masked(servers.masked(output), folder) || '(nothing)'
}

function masked(text: string, folder: string): string {
  return (
    text
      .replaceAll(folder, '/app')
      // How Node says that nobody caught it differs with its version.
      .replace(/^(?:node|file):.*:\d+\n.*\n *\^\n\n/, '')
      .replace(/\n\nNode\.js v.*$/, '')
      .replace(/^( *(?:port|errno):) -?\d+/gm, '$1 …')
      .replace(/ \(line \d+ column \d+\)/g, '')
      .replace(/; if the root CA is installed locally.*(?=\])/g, '')
      .replace(/\b[0-9A-F]{8,16}:error:.*$/gm, '…')
      .replace(/\((?:node:|ext:|native:)[^)]*\)/g, '(…)')
      .replace(/\b(?:node|ext):\S+:\d+:\d+/g, '…')
      .replace(/(subscriptionIdentifiers?:? (?:\[ ?)?)\d+/g, '$1…')
  )
}
