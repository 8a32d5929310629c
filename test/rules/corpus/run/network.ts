/** Clients over real TCP and WebSocket on the loopback interface, many at a time. */
import { Client } from '../../../../src/client/node.js'
import { turn } from '../../../support/pausing.js'
import { ids } from '../case.js'
import { enter, optionsFor, type Peer, script } from './enter.js'
import { pieces } from './jobs.js'
import { quietly } from './quietly.js'
import { type Kind, type Link, nameLength, type Servers, serve } from './servers.js'
import { disagreement, finding, type Job, type Observed } from './verdict.js'

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
