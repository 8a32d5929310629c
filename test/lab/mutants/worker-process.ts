/** One worker process at a time, that takes tasks and answers each. One that gives no answer in time is killed and replaced. */
import { type ChildProcess, fork } from 'node:child_process'

const errorsKept = 4000
/** Megabytes of a worker's heap: a mutant may take memory without end. */
const mostHeap = 2048

/** With this code a worker ends itself when a task takes too much processor time. */
export const looped = 99
/** Milliseconds after which one that does nothing at all is ended, however busy the machine is. */
const patience = 1_800_000

/** Why there is no answer. */
export interface Broken {
  readonly broken: 'ended' | 'silent'
  readonly detail: string
}

export class Hand<Task, Answer extends object> {
  readonly #worker: string
  readonly #root: string
  readonly #given: readonly string[]
  #child: Promise<ChildProcess> | undefined
  #errors = ''

  constructor(worker: string, root: string, given: readonly string[] = []) {
    this.#worker = worker
    this.#root = root
    this.#given = given
  }

  /** The answer to a task, or what is wrong. */
  async run(task: Task): Promise<Answer | Broken> {
    this.#child ??= this.#start()
    const child = await this.#child
    return new Promise((resolve) => {
      const end = (answer: Answer | Broken): void => {
        clearTimeout(timer)
        child.off('message', end).off('exit', gone)
        resolve(answer)
      }
      const gone = (code: number | null): void => {
        this.#child = undefined
        if (code === looped) end({ broken: 'silent', detail: 'it loops without a pause' })
        else end({ broken: 'ended', detail: `the worker ended with ${code}: ${this.#errors}` })
      }
      const timer = setTimeout(() => {
        this.#child = undefined
        child.kill('SIGKILL')
        end({ broken: 'silent', detail: 'no answer' })
      }, patience)
      child.on('message', end).on('exit', gone)
      child.send(task as object)
    })
  }

  async close(): Promise<void> {
    const child = await this.#child
    if (child === undefined || child.exitCode !== null) return
    await new Promise((resolve) => {
      child.on('exit', resolve)
      child.disconnect()
    })
  }

  #start(): Promise<ChildProcess> {
    const child = fork(this.#worker, this.#given, {
      cwd: this.#root,
      execArgv: [`--max-old-space-size=${mostHeap}`],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#errors = ''
    child.stderr?.on('data', (text: Buffer) => {
      this.#errors = (this.#errors + text).slice(-errorsKept)
    })
    return new Promise((resolve, reject) => {
      child.once('message', () => resolve(child))
      child.once('exit', (code) =>
        reject(new Error(`a worker ended with ${code}: ${this.#errors}`)),
      )
    })
  }
}
