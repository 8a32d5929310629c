/** Clients over real TCP and WebSocket on the loopback interface, many at a time, against small raw servers, which know nothing of MQTT but CONNECT. */
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { Client } from '../../../../src/client/node.js'
import { turn } from '../../../support/pausing.js'
import { listening } from '../../../support/servers.js'
import { ids } from '../case.js'
import { enter, Hearing, optionsFor, type Peer, script } from './enter.js'
import { disagreement, finding, type Job, type Observed, pieces } from './jobs.js'
import { quietly } from './quietly.js'

/** Characters of a user name. */
const nameLength = 6

type Kind = 'tcp' | 'websocket'

interface Wire {
  write(bytes: Uint8Array): void
  /** Without a word. */
  drop(): void
}

class Link {
  readonly words: string[] = []
  stream: Observed['stream'] = 'up'
  told = 0
  /** Called for each change of any kind. */
  onChange: (() => void) | undefined
  /** Called as soon as this word was heard, before anything else can happen. */
  reflex: { readonly word: string; readonly act: () => void } | undefined
  readonly #wire: Wire
  readonly #hearing = new Hearing()

  constructor(wire: Wire) {
    this.#wire = wire
  }

  say(bytes: Uint8Array): void {
    this.told += bytes.length
    this.#wire.write(bytes)
  }

  drop(): void {
    this.onChange = undefined
    this.#wire.drop()
  }

  handleBytes(bytes: Uint8Array): void {
    const words = this.#hearing.push(bytes)
    this.words.push(...words)
    if (this.reflex !== undefined && words.includes(this.reflex.word)) this.reflex.act()
    this.onChange?.()
  }

  handleEnd(stream: Observed['stream']): void {
    if (this.stream !== 'up') return
    this.stream = stream
    this.onChange?.()
  }
}

/** Waits for CONNECT, and gives the link to whoever waits for its name. */
class Reception {
  readonly #expected = new Map<string, (link: Link) => void>()

  expect(name: string): Promise<Link> {
    return new Promise((resolve) => void this.#expected.set(name, resolve))
  }

  /** Makes a link; gives what takes its bytes. */
  welcome(link: Link): (bytes: Uint8Array) => void {
    const first: number[] = []
    let known = false
    return (bytes) => {
      link.handleBytes(bytes)
      if (known) return
      first.push(...bytes)
      if (!link.words.includes('connect')) return
      known = true
      const name = String.fromCharCode(...first.slice(-nameLength))
      this.#expected.get(name)?.(link)
      this.#expected.delete(name)
    }
  }
}

interface Servers {
  readonly urls: readonly string[]
  /** The link of the client with this user name, once its CONNECT is there. */
  expect(name: string): Promise<Link>
  close(): Promise<void>
}

function acceptTcp(socket: Socket, reception: Reception): void {
  const link = new Link({
    write: (bytes) => void socket.write(bytes),
    drop: () => socket.resetAndDestroy(),
  })
  socket.on('data', reception.welcome(link))
  // How a stream was cut is not to be seen here: a destroyed socket may look like an ended one.
  for (const event of ['end', 'close', 'error'] as const)
    socket.on(event, () => link.handleEnd('over'))
}

function acceptWebSocket(socket: WebSocket, reception: Reception): void {
  const link = new Link({
    write: (bytes) => socket.send(bytes, () => undefined),
    drop: () => socket.terminate(),
  })
  const take = reception.welcome(link)
  socket.on('message', (data) => take(data as Buffer))
  socket.on('error', () => undefined)
  socket.on('close', (code) => link.handleEnd(code === 1000 ? 'ended' : 'cut'))
}

async function listenTcp(reception: Reception): Promise<{ url: string; server: Server }> {
  // Our side stays open when the client ends its own.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    acceptTcp(socket, reception),
  )
  return { url: `mqtt://127.0.0.1:${await listening(server)}`, server }
}

async function listenWebSocket(reception: Reception): Promise<{ url: string; server: Server }> {
  const server = createHttpServer()
  const sockets = new WebSocketServer({
    server,
    perMessageDeflate: false,
    handleProtocols: () => 'mqtt',
  })
  sockets.on('connection', (socket) => acceptWebSocket(socket, reception))
  return { url: `ws://127.0.0.1:${await listening(server)}/mqtt`, server }
}

async function serve(kind: Kind, ports = 8): Promise<Servers> {
  const reception = new Reception()
  const started = await Promise.all(
    Array.from({ length: ports }, () =>
      kind === 'tcp' ? listenTcp(reception) : listenWebSocket(reception),
    ),
  )
  return {
    urls: started.map(({ url }) => url),
    expect: (name) => reception.expect(name),
    close: async () => {
      await Promise.all(
        started.map(({ server }) => new Promise((resolve) => void server.close(resolve))),
      )
    },
  }
}

/** Clients at a time. */
const width = 64
/** Milliseconds after which something must have gone wrong. */
const patience = 20_000

const probed = (word: string): boolean => word.startsWith(`pubcomp ${ids.probe} `)

class Run {
  readonly #job: Job
  readonly #client: Client
  readonly #arriving: Promise<Link>
  #link: Link | undefined
  #cause: number | undefined
  #closed = false
  #wake: (() => void) | undefined
  readonly #deadline = Date.now() + patience

  constructor(job: Job, servers: Servers, number: number) {
    this.#job = job
    const { sequence, state } = job
    const name = String(number).padStart(nameLength, '0')
    this.#arriving = servers.expect(name)
    const url = servers.urls[number % servers.urls.length] as string
    this.#client = new Client(url, { ...optionsFor(sequence.version, state), username: name })
    this.#client.closed.then((error) => {
      this.#cause = error?.reasonCode
      this.#closed = true
      this.#wake?.()
    })
  }

  async go(where: string): Promise<string | undefined> {
    try {
      await this.#enter()
      await this.#speak()
      await this.#until(() => this.#isDone())
      // What should not come would come now.
      await turn()
      return this.#judge(where, disagreement(this.#job.expected, this.#observe()))
    } catch (error) {
      return this.#judge(where, error instanceof Error ? error.message : String(error))
    } finally {
      this.#client.destroy()
      this.#link?.drop()
    }
  }

  #judge(where: string, wrong: string | undefined): string | undefined {
    return wrong === undefined ? undefined : finding(where, this.#job, this.#observe(), wrong)
  }

  async #enter(): Promise<void> {
    const { sequence, state } = this.#job
    const peer: Peer = {
      say: (bytes) => this.#link?.say(Uint8Array.from(bytes)),
      hear: async () => {
        this.#link ??= await this.#arriving
        const { words } = this.#link
        await this.#until(() => words.length > 0)
        return words.shift() as string
      },
    }
    if (state.leaving) this.#arriving.then((link) => this.#answerGoodbye(link))
    await enter(this.#client, peer, sequence.version, state)
  }

  // What is said while our DISCONNECT is on its way has to be said at once: a WebSocket is over a moment later.
  #answerGoodbye(link: Link): void {
    const { sequence, cuts } = this.#job
    const act = (): void => {
      for (const piece of pieces(sequence.bytes, cuts)) link.say(piece)
    }
    link.reflex = { word: 'disconnect 00', act }
  }

  async #speak(): Promise<void> {
    const { sequence, state, cuts, expected } = this.#job
    if (state.leaving) return
    for (const piece of pieces(sequence.bytes, cuts)) {
      this.#link?.say(piece)
      if (cuts.length > 0) await turn()
    }
    if (expected.end === 'open' && !expected.mute)
      this.#link?.say(Uint8Array.from(script(sequence.version, false).probe))
  }

  #isDone(): boolean {
    const { expected } = this.#job
    const link = this.#link as Link
    const over = link.stream !== 'up' && this.#closed
    if (over || (expected.end !== 'open' && expected.end !== 'waiting')) return over
    const heard = link.words.filter((word) => !probed(word)).length
    if (heard < expected.acks.length + expected.auths[0]) return false
    if (expected.end === 'open' && !expected.mute) return link.words.some(probed)
    return this.#client.stats().bytesReceived >= link.told
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (Date.now() > this.#deadline) throw new Error('nothing happens any more')
      await this.#change()
    }
  }

  /** Something was heard, or ended, or a moment has passed: what the client counts tells nobody. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 5)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#link !== undefined) this.#link.onChange = this.#wake
    })
  }

  #observe(): Observed {
    const link = this.#link
    const said = link?.words.filter((word) => !probed(word)) ?? []
    return { said, stream: link?.stream ?? 'up', cause: this.#cause, state: this.#client.state }
  }
}

/** Runs all over one transport; gives what was not as expected. */
export const runNetwork = (kind: Kind, jobs: readonly Job[]): Promise<string[]> =>
  quietly(() => run(kind, jobs))

async function run(kind: Kind, jobs: readonly Job[]): Promise<string[]> {
  const servers = await serve(kind)
  const findings: string[] = []
  let next = 0
  const work = async (): Promise<void> => {
    for (let number = next++; number < jobs.length; number = next++) {
      const wrong = await new Run(jobs[number] as Job, servers, number).go(kind)
      if (wrong !== undefined) findings.push(wrong)
    }
  }
  await Promise.all(Array.from({ length: width }, work))
  await servers.close()
  return findings
}
