/** Clients over the memory transport, many at a time, in a time that stands still. */
import { BaseClient } from '../../../../src/client/client.js'
import { VirtualClock } from '../../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../../src/transport/memory.js'
import type { Sink, Transport } from '../../../../src/transport/transport.js'
import { turn } from '../../../support/pausing.js'
import type { Bytes } from '../bytes.js'
import { enter, Hearing, optionsFor, type Peer } from './enter.js'
import { disagreement, finding, type Job, type Observed, pieces } from './jobs.js'
import { quietly } from './quietly.js'

const noop = (): void => undefined
/** Clients at a time. */
const width = 24
/** Nobody reads into it: this transport hands over what was written. */
const noWindow = new Uint8Array(0)

class Lane {
  thrown: unknown
  readonly #tasks: { run: (() => void) | undefined }[] = []

  readonly schedule = (callback: () => void, delay: number): (() => void) => {
    if (delay > 0) return noop
    const task: { run: (() => void) | undefined } = { run: callback }
    this.#tasks.push(task)
    return () => {
      task.run = undefined
    }
  }

  /** False when there was nothing to do. */
  step(): boolean {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) {
      if (task.run === undefined) continue
      try {
        task.run()
      } catch (error) {
        this.thrown ??= error
      }
      return true
    }
    return false
  }
}

class MemoryPeer implements Sink, Peer {
  readonly words: string[] = []
  stream: Observed['stream'] = 'up'
  readonly #transport: Transport
  readonly #hearing = new Hearing()
  #waiting: ((word: string) => void) | undefined

  constructor(transport: Transport) {
    this.#transport = transport
    transport.open(this)
  }

  say(bytes: Bytes): void {
    this.sayBytes(Uint8Array.from(bytes))
  }

  sayBytes(bytes: Uint8Array): void {
    this.#transport.write(bytes.slice())
  }

  hear(): Promise<string> {
    const word = this.words.shift()
    if (word !== undefined) return Promise.resolve(word)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  buffer(): Uint8Array {
    return noWindow
  }

  read(): void {
    throw new Error('the memory transport delivers in chunks here')
  }

  chunk(bytes: Uint8Array): void {
    this.words.push(...this.#hearing.push(bytes))
    if (this.#waiting === undefined || this.words.length === 0) return
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting(this.words.shift() as string)
  }

  drain(): void {
    // A server of a test may say more than it should.
  }

  closed(cause: unknown): void {
    this.stream = cause === undefined ? 'ended' : 'cut'
  }
}

class Run {
  readonly job: Job
  readonly lane = new Lane()
  readonly client: BaseClient
  entered = false
  failure: unknown
  #peer: MemoryPeer | undefined
  #cause: number | undefined

  constructor(job: Job) {
    this.job = job
    const { sequence, state } = job
    const { schedule } = this.lane
    const platform = {
      ...virtualPlatform(new VirtualClock()),
      setTimer: schedule,
      nextTurn: (callback: () => void) => void schedule(callback, 0),
    }
    const dial = async (): Promise<Transport> => {
      const [near, far] = memoryPair({ schedule })
      this.#peer = new MemoryPeer(far)
      return near
    }
    this.client = new BaseClient(
      platform,
      { url: 'memory://corpus', transport: dial },
      optionsFor(sequence.version, state),
    )
    this.client.closed.then((error) => {
      this.#cause = error?.reasonCode
    })
  }

  /** Goes to the state, and says what the case is about. */
  async go(): Promise<void> {
    const { sequence, state, cuts } = this.job
    try {
      const entering = enter(this.client, this.#door(), sequence.version, state)
      await entering
      this.entered = true
      for (const piece of pieces(sequence.bytes, cuts)) this.#peer?.sayBytes(piece)
    } catch (error) {
      this.failure = error
    }
  }

  /** What kept it from being run. */
  accident(): string | undefined {
    if (this.lane.thrown !== undefined) return `it threw: ${this.lane.thrown}`
    return this.entered ? undefined : `the state was not reached: ${this.failure}`
  }

  observe(): Observed {
    return {
      said: this.#peer?.words ?? [],
      stream: this.#peer?.stream ?? 'up',
      cause: this.#cause,
      state: this.client.state,
    }
  }

  // The peer is there once the client has dialled.
  #door(): Peer {
    return {
      say: (bytes) => this.#peer?.say(bytes),
      hear: async () => {
        while (this.#peer === undefined) await Promise.resolve()
        return this.#peer.hear()
      },
    }
  }
}

/** Lets all of them do what they have to do, until none has anything left. */
async function settle(runs: readonly Run[]): Promise<void> {
  for (let quiet = 0; quiet < 2; ) {
    let busy = false
    for (const { lane } of runs) if (lane.step()) busy = true
    quiet = busy ? 0 : quiet + 1
    await turn()
  }
}

/** Runs all; gives what was not as expected. */
export const runMemory = (jobs: readonly Job[]): Promise<string[]> => quietly(() => run(jobs))

async function run(jobs: readonly Job[]): Promise<string[]> {
  const findings: string[] = []
  for (let at = 0; at < jobs.length; at += width) {
    const runs = jobs.slice(at, at + width).map((job) => new Run(job))
    for (const run of runs) void run.go()
    await settle(runs)
    for (const run of runs) {
      const observed = run.observe()
      const wrong = run.accident() ?? disagreement(run.job.expected, observed)
      if (wrong !== undefined) findings.push(finding('memory', run.job, observed, wrong))
      run.client.destroy()
    }
    await settle(runs)
  }
  return findings
}
