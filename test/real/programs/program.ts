/**
 * Runs the programs of this folder as their users do: each in a process of its own, on the built package, watched through what it prints.
 *
 * A process that a test forgets is killed with the test process.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import { root } from '../../package/fixture.js'
import { within } from '../waiting.js'

/** One line that a program printed. */
export type Report = Readonly<Record<string, unknown>>

/** A running program. */
export class Program {
  /** What it printed so far. */
  readonly reports: Report[] = []
  /** Settles with the exit code when it has ended and everything it printed is there. */
  readonly ending: Promise<number | null>
  readonly #child: ChildProcess
  #rest = ''
  #errors = ''
  #told: (() => void) | undefined

  /** Starts `<file>` of this folder, with flags for Node. Killed after a minute, or so many. */
  constructor(
    file: string,
    env: Readonly<Record<string, string>>,
    flags: readonly string[] = [],
    minutes = 1,
  ) {
    this.#child = spawn(
      process.execPath,
      [
        '--unhandled-rejections=strict',
        ...flags,
        path.join(root, 'test', 'real', 'programs', file),
      ],
      {
        cwd: root,
        env: { ...process.env, ...env },
        timeout: minutes * 60_000,
        killSignal: 'SIGKILL',
      },
    )
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
    const reap = (): void => void this.#child.kill('SIGKILL')
    process.once('exit', reap)
    this.ending = new Promise((resolve) => {
      this.#child.once('close', (code) => {
        process.off('exit', reap)
        resolve(code)
      })
    })
  }

  /** The first report, of those from number `from` on, that is as wanted. Rejects when the program ends without. */
  async says(wanted: (report: Report) => boolean, what: string, from = 0): Promise<Report> {
    const found = async (): Promise<Report> => {
      for (;;) {
        const report = this.reports.slice(from).find(wanted)
        if (report !== undefined) return report
        await new Promise<void>((resolve) => {
          this.#told = resolve
        })
      }
    }
    const ended = this.ending.then((code) => {
      const report = this.reports.slice(from).find(wanted)
      if (report !== undefined) return report
      throw new Error(`ended with ${code}`)
    })
    return within(Promise.race([found(), ended]), what).catch((error: Error) => {
      throw new Error(
        `${what}: ${error.message}; it printed ${JSON.stringify(this.reports.slice(-5))} ${this.#errors}`,
      )
    })
  }

  /** The exit code and the last report of a program that is about to end. */
  async ends(deadline?: number): Promise<{
    readonly code: number | null
    readonly last: Report | undefined
    readonly errors: string
  }> {
    const code = await within(this.ending, 'the end of the program', deadline)
    return { code, last: this.reports.at(-1), errors: this.#errors }
  }

  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(signal)
  }

  #read(text: string): void {
    const lines = `${this.#rest}${text}`.split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.reports.push(JSON.parse(line) as Report)
    this.#told?.()
  }
}

/** What a program printed on its error stream, but for warnings of publishes that were not sent. */
export function besideUnsent(errors: string): string {
  return errors.replace(
    /^\(node:\d+\) \[MQWIRE_(?:PUBLISH_REFUSED|UNSENT)\] .*\n|^\(Use `node --trace-warnings .*\n/gm,
    '',
  )
}
