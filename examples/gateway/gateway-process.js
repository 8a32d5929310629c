/** The gateway as a process: it is started, fed, killed, and started again with what it left on the disk. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('gateway.js', import.meta.url))

/** One gateway, of which at most one process runs. */
export class GatewayProcess {
  #settings
  #heard
  #child
  #ending

  /** `heard(event)` is called with each thing that it says. */
  constructor({ url, folder }, heard) {
    this.#settings = { url, folder }
    this.#heard = heard
  }

  /** Starts it; fulfils when it says something for the first time, or has ended. */
  async start() {
    const { url, folder } = this.#settings
    const child = spawn(process.execPath, [program, '--data', folder], {
      env: { ...process.env, MQTT_URL: url },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    // What is written to a process that was killed goes nowhere.
    child.stdin.on('error', () => {})
    const lines = createInterface({ input: child.stdout }).on('line', (line) => this.#hear(line))
    this.#child = child
    this.#ending = new Promise((resolve) => child.once('close', resolve))
    await Promise.race([once(lines, 'line'), this.#ending])
  }

  /** Gives it a reading, which is gone when there is nobody to take it. */
  feed(reading) {
    this.#child?.stdin.write(`${JSON.stringify(reading)}\n`)
  }

  /** The plug: no goodbye. */
  async kill() {
    const child = this.#child
    this.#child = undefined
    child?.kill('SIGKILL')
    await this.#ending
  }

  /** Ends its input, and waits for its end; gives its exit code, or undefined when it takes too long. */
  async finish(patience) {
    this.#child.stdin.end()
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, patience)
    })
    const code = await Promise.race([this.#ending, late])
    clearTimeout(timer)
    return code
  }

  #hear(line) {
    let event
    try {
      event = JSON.parse(line)
    } catch {
      // It was killed in the middle of a line.
      return
    }
    this.#heard(event)
  }
}
