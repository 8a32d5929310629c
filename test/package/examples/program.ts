/** Runs an example as its own process, as a reader of the README would; call `requireDist()` first. */
import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { eventually } from '../../real/waiting.js'
import { root } from '../fixture.js'

/** A running example. */
export class Program {
  /** What it printed so far, to both streams. */
  output = ''
  /** Settles when it has ended and everything it printed is there. */
  readonly ending: Promise<{ readonly code: number | null; readonly output: string }>
  readonly #child: ChildProcess

  /** Starts `examples/<file>`; `url` is its MQTT_URL, `more` further variables. Killed after `timeout` milliseconds. */
  constructor(
    file: string,
    args: readonly string[] = [],
    url = '',
    more: Readonly<Record<string, string>> = {},
    timeout = 15_000,
  ) {
    const env = { ...process.env, MQTT_URL: url, ...more }
    this.#child = spawn(process.execPath, [path.join(root, 'examples', file), ...args], {
      cwd: root,
      env,
      timeout,
      killSignal: 'SIGKILL',
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    }
    const reap = () => void this.#child.kill('SIGKILL')
    process.once('exit', reap)
    this.ending = new Promise((resolve) => {
      this.#child.once('close', (code) => {
        process.off('exit', reap)
        resolve({ code, output: this.output })
      })
    })
  }

  /** Fulfils when it has printed this; rejects when it ended without, or after 8 seconds. */
  async prints(text: string): Promise<void> {
    const ended = this.ending.then(({ code }) => `ended with ${code}`)
    const late = eventually(() => this.output.includes(text), text).catch(
      (error: Error) => error.message,
    )
    const failure = await Promise.race([late, ended])
    if (!this.output.includes(text))
      throw new Error(`'${text}' was not printed (${failure}), but: ${this.output}`)
  }

  signal(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(signal)
  }

  /** What it printed until it ended, with this code. */
  async ends(wanted = 0): Promise<string> {
    const { code, output } = await this.ending
    if (code !== wanted) throw new Error(`It ended with ${code}, not with ${wanted}: ${output}`)
    return output
  }

  /** Stops it; gives what it printed. */
  stop(signal: 'SIGINT' | 'SIGTERM' = 'SIGINT', wanted = 0): Promise<string> {
    this.signal(signal)
    return this.ends(wanted)
  }
}

/** A module of the examples. They are JavaScript, so what it holds has no types. */
export const exampleModule = (file: string) =>
  import(pathToFileURL(path.join(root, 'examples', file)).href)
