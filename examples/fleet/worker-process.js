/** A worker as a process: it is started, killed, started again, and asked to leave. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('worker.js', import.meta.url))

/** One process. */
export class WorkerProcess {
  id
  /** Jobs that it began, oldest first. */
  began = []
  #child
  #ended

  /** `heard(event, worker)` is called with each thing that it says. */
  constructor({ id, url, hand }, heard) {
    this.id = id
    const env = { ...process.env, MQTT_URL: url }
    this.#child = spawn(process.execPath, [program, '--id', id, '--hand', String(hand)], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      // A process that was killed may have been in the middle of a line.
      if (!line.endsWith('}')) return
      const event = JSON.parse(line)
      if (event.began !== undefined) this.began.push(event.began)
      heard(event, this)
    })
    this.#ended = once(this.#child, 'close').then(([code]) => code)
  }

  /** Fulfils with the exit code; null where it was killed. */
  get ended() {
    return this.#ended
  }

  /** SIGKILL: no goodbye. */
  async kill() {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  /** SIGTERM: it leaves. Fulfils with its exit code. */
  leave() {
    this.#child.kill('SIGTERM')
    return this.#ended
  }
}
