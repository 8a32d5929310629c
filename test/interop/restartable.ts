/**
 * A mosquitto that is killed and started again in its place: same ports, same folder, and whatever it remembers from its last life.
 *
 * It assumes that `missingForMosquitto()` found nothing missing. `stop()` works in every state, and a process that dies takes its broker along.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { eventually } from './waiting.js'

/** What of a life outlives SIGKILL: all but the last few changes, what there was a second before or less, or nothing. */
export type Memory = 'most of it' | 'every second' | 'nothing'

/** What it is started with. */
export interface RestartableSettings {
  /** Default `'nothing'`. */
  readonly memory?: Memory
  /** User names with passwords; anybody may connect without. */
  readonly passwords?: Readonly<Record<string, string>>
}

/** Enough for every message of a long run; and for those that a broker fallen back holds on to, because their senders are done with them. */
const limits = ['max_queued_messages 1000000', 'max_queued_bytes 0', 'max_inflight_messages 0']

const memories: Readonly<Record<Memory, readonly string[]>> = {
  'most of it': ['persistence true', 'autosave_on_changes true', 'autosave_interval 20'],
  'every second': ['persistence true', 'autosave_interval 1'],
  nothing: ['persistence false'],
}

const path = [process.env['PATH'] ?? '', '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin'].join(delimiter)
const env = { ...process.env, PATH: path }

/** A broker at one port, through several lives. */
export class Restartable {
  readonly port: number
  /** Times that it was killed. */
  kills = 0
  readonly #folder: string
  #child: ChildProcess | undefined
  #guard: ChildProcess | undefined
  #log = ''

  private constructor(folder: string, port: number) {
    this.#folder = folder
    this.port = port
  }

  /** A broker that accepts connections. */
  static async start(settings: RestartableSettings = {}): Promise<Restartable> {
    const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
    const broker = new Restartable(folder, await freePort())
    writeFileSync(join(folder, 'mosquitto.conf'), configuration(folder, broker.port, settings).join('\n'))
    await broker.live()
    return broker
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`
  }

  /** True once it has something to remember. */
  get saved(): boolean {
    return existsSync(join(this.#folder, 'mosquitto.db'))
  }

  /** Starts it again, after `kill()`. Fulfils when it accepts connections. */
  async live(): Promise<void> {
    // It is gone at once when somebody else has its port meanwhile: it gets it back.
    await eventually(async () => {
      if (this.#child === undefined || this.#child.exitCode !== null) this.#spawn()
      return accepts(this.port)
    }, `mosquitto accepting at ${this.port}; it printed: ${this.#log}`)
  }

  /** SIGKILL. Fulfils when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    this.kills += 1
    this.#guard?.kill('SIGKILL')
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }

  /** Ends, and removes what it left. */
  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #spawn(): void {
    this.#guard?.kill('SIGKILL')
    const child = spawn('mosquitto', ['-c', join(this.#folder, 'mosquitto.conf')], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#log = `${this.#log}${text}`.slice(-4000)
      })
    }
    child.once('error', () => undefined)
    this.#child = child
    this.#guard = guard(child.pid, this.#folder)
  }
}

// Outlives this process by the moment that it takes to see it gone, however it ended.
function guard(pid: number | undefined, folder: string): ChildProcess {
  const script = 'cat > /dev/null; kill -9 "$0"; rm -rf "$1"'
  const watcher = spawn('sh', ['-c', script, String(pid), folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  watcher.once('error', () => undefined)
  return watcher
}

function configuration(folder: string, port: number, { memory = 'nothing', passwords }: RestartableSettings): string[] {
  return [
    // Started as root, mosquitto would turn into a user who cannot read the folder.
    ...(process.getuid?.() === 0 ? ['user root'] : []),
    'log_dest stdout',
    'log_type error',
    'log_type warning',
    // Else its answers wait for the kernel's delayed acknowledgements.
    'set_tcp_nodelay true',
    ...limits,
    ...memories[memory],
    `persistence_location ${folder}/`,
    ...login(folder, passwords),
    `listener ${port} 127.0.0.1`,
    '',
  ]
}

function login(folder: string, passwords: RestartableSettings['passwords']): string[] {
  if (passwords === undefined) return ['allow_anonymous true']
  const file = join(folder, 'passwords')
  writeFileSync(file, '')
  for (const [name, password] of Object.entries(passwords)) execFileSync('mosquitto_passwd', ['-b', file, name, password], { env, stdio: 'pipe' })
  return ['allow_anonymous false', `password_file ${file}`]
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  await new Promise((resolve) => server.close(resolve))
  return port
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
