/**
 * A reporter for vitest that shows how far a run of tests is, and the time left. Files that are not read yet are taken for as long as the others.
 *
 * It must never print to standard output, which belongs to the other reporters.
 */
import { Progress } from './progress.mjs'

export default class ProgressReporter {
  #progress
  #files = 0
  #read = 0
  #tests = 0
  #done = 0

  onTestRunStart(files) {
    this.#files = files.length
    this.#progress = new Progress('interop', 'tests')
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
