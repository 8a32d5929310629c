/**
 * The event log: bounded, and what happens many times within a moment is one entry with a count.
 */

const most = 200
/** Milliseconds within which the same text is the same entry. */
const moment = 1500

/** See the file's comment. */
export class Journal {
  /** Newest first: `{ at, text, count }`, `at` in milliseconds since the epoch. */
  entries = []
  /** Changes with every note. */
  version = 0
  /** What is worth telling a reader who does not look: the latest of it. */
  news = ''
  #date

  constructor(date = () => Date.now()) {
    this.#date = date
  }

  announce(text) {
    this.news = text
    this.note(text)
  }

  note(text) {
    const at = this.#date()
    this.version += 1
    const same = this.entries.find((entry) => entry.text === text && at - entry.at < moment)
    if (same !== undefined) {
      same.count += 1
      return
    }
    this.entries.unshift({ at, text, count: 1 })
    if (this.entries.length > most) this.entries.length = most
  }
}
