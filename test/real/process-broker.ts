/**
 * A broker in a process of its own, through several lives: same ports, same folder, and whatever it remembers from its last life.
 *
 * `stop()` works in every state, and a test process that dies takes its brokers along. It knows nothing of MQTT, and nothing of mqwire is used here.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { accepts } from '../support/servers.js'
import type { Broker } from './brokers.js'
import { eventually } from './waiting.js'

const logLimit = 200_000

/** How a process is started, and where it can be reached. */
export interface ProcessSettings {
  readonly name: string
  readonly command: string
  readonly parameters: readonly string[]
  /** Removed when it stops. */
  readonly folder: string
  readonly urls: Broker['urls']
  /** Ports and socket paths that accept once it is ready. */
  readonly doors: readonly (number | string)[]
  /** Milliseconds in which it gets ready. */
  readonly patience?: number
  /** What it prints once it is ready, when accepting is not enough. */
  readonly ready?: string
}

export class ProcessBroker implements Broker {
  readonly urls: Broker['urls']
  log = ''
  /** Removed when it stops. */
  readonly folder: string
  readonly #settings: ProcessSettings
  #child: ChildProcess | undefined
  #guard: ChildProcess | undefined

  constructor(settings: ProcessSettings) {
    this.#settings = settings
    this.urls = settings.urls
    this.folder = settings.folder
  }

  async live(): Promise<void> {
    const { name, doors, patience, ready = '' } = this.#settings
    const from = this.log.length
    const child = this.#spawn()
    const check = (): void => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${name} ended: ${this.log.slice(-2000)}`)
    }
    for (const door of doors) {
      const accepting = async (): Promise<boolean> => {
        check()
        return accepts(door)
      }
      await eventually(accepting, `${name} accepting at ${door}`, patience)
    }
    const said = (): boolean => {
      check()
      return this.log.slice(from).includes(ready)
    }
    await eventually(said, `${name} getting ready`, patience)
  }

  freeze(): void {
    const pid = this.#child?.pid
    if (pid === undefined) return
    this.#child?.kill('SIGSTOP')
    // Its threads stop one after the other, and until then they answer.
    const end = performance.now() + 2000
    while (threadStates(pid).some((state) => state !== 'T') && performance.now() < end);
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async shutDown(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async stop(): Promise<void> {
    await this.kill()
    this.#guard?.kill('SIGKILL')
    rmSync(this.#settings.folder, { recursive: true, force: true, maxRetries: 3 })
  }

  #spawn(): ChildProcess {
    const { command, parameters, folder } = this.#settings
    this.#guard?.kill('SIGKILL')
    const child = spawn(command, parameters, { stdio: ['pipe', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (this.log.length < logLimit) this.log += text
      })
    }
    child.once('error', () => undefined)
    child.stdin.on('error', () => undefined)
    this.#child = child
    this.#guard = guard(child.pid, folder)
    return child
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await gone
  }
}

/** State letters of the threads of a process, on Linux; else none. */
function threadStates(pid: number): string[] {
  const folder = `/proc/${pid}/task`
  if (!existsSync(folder)) return []
  return readdirSync(folder).map((thread) =>
    readFileSync(`${folder}/${thread}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .charAt(0),
  )
}

// Outlives this process by the moment that it takes to see it gone, however it ended: handlers of `exit` do not run when it is killed.
function guard(pid: number | undefined, folder: string): ChildProcess {
  const script = 'cat > /dev/null; kill -9 "$0"; rm -rf "$1"'
  const watcher = spawn('sh', ['-c', script, String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watcher.once('error', () => undefined)
  return watcher
}

/** Starts what `make` makes. Somebody else may take a port between its choice and the start: it is then made anew. */
export async function startProcess(make: () => Promise<ProcessBroker>): Promise<ProcessBroker> {
  for (let attempt = 1; ; attempt += 1) {
    const broker = await make()
    try {
      await broker.live()
      return broker
    } catch (error) {
      await broker.stop()
      if (attempt === 3) throw error
    }
  }
}
