/**
 * A reporter for vitest that shows how far a run of tests is, and the time left. Files that are not read yet are taken for as long as the others.
 *
 * It must never print to standard output, which belongs to the other reporters.
 */
import { Progress } from './progress.mjs'

export default class ProgressReporter {
  #given
  #progress
  #files = 0
  #read = 0
  #tests = 0
  #done = 0

  /** `name` begins each line; `interval` are the milliseconds from one to the next where there is no terminal. */
  constructor(given) {
    this.#given = given
  }

  onTestRunStart(files) {
    const { name, interval } = this.#given
    this.#files = files.length
    this.#progress = new Progress(name, 'tests', interval === undefined ? {} : { interval })
  }

  onTestModuleCollected(file) {
    this.#read += 1
    this.#tests += [...file.children.allTests()].length
    this.#tell()
  }

  onTestCaseResult() {
    this.#done += 1
    this.#tell()
  }

  onTestRunEnd() {
    this.#progress?.end()
  }

  #tell() {
    const total = this.#read === 0 ? undefined : Math.round((this.#tests * this.#files) / this.#read)
    this.#progress?.at(this.#done, total)
  }
}
