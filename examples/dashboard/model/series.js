/**
 * What the charts draw: for each field of the payloads a series of each topic, all over one common row of times.
 *
 * A tick samples: of what came since the last one, each series takes the newest value. So a chart costs the same at ten messages a second and at ten
 * thousand. Everything is bounded by `limits`; a series that was silent for the whole window makes room. Pure: the caller tells the time.
 */

/** Fields, series of a field, points of a series, milliseconds that they reach back, and characters of a topic that has a series. */
export const limits = { fields: 8, series: 24, points: 1200, window: 300_000, topic: 500 }

/** Values in a row that rise before a field counts as one that only ever does. */
const suspicious = 30

class Series {
  /** One for each time: a number; undefined where nothing new came, which a line passes over; null where the line is interrupted. */
  values
  /** The newest value, and when it came; values in the window. */
  last
  at = 0
  count = 0
  #next

  constructor(topic, length) {
    this.topic = topic
    this.values = new Array(length).fill(undefined)
  }

  set(value) {
    this.#next = value
  }

  /** A value from before, where there is none yet. */
  fill(index, value) {
    if (typeof this.values[index] === 'number') return
    this.values[index] = value
    this.last = value
    this.count += 1
  }

  commit(now) {
    const value = this.#next
    this.#next = undefined
    this.values.push(value)
    if (value === undefined) return
    this.last = value
    this.at = now
    this.count += 1
  }

  forget(places) {
    for (const value of this.values.splice(0, places))
      if (typeof value === 'number') this.count -= 1
  }
}

/** The series of one field, by topic. */
class Field {
  series = new Map()
  /** True when topics were left out for want of room. */
  more = false
  #rises = 0
  #falls = false

  constructor(name) {
    this.name = name
  }

  /** A value came after another one of the same series. */
  compare(value, before) {
    if (value > before) this.#rises += 1
    else this.#falls = true
  }

  /** True when each value was above the one before, for long enough: a counter or a clock. */
  get rising() {
    return !this.#falls && this.#rises >= suspicious
  }
}

/** All series. */
export class SeriesStore {
  /** Seconds since 1970, ascending. */
  times = []
  /** Field by name, in the order of discovery. */
  fields = new Map()
  #interrupted = false

  /** A value came; false when there is no room for it. Only the last one before `commit()` counts. */
  set(topic, name, value) {
    if (topic.length > limits.topic) return false
    const field = this.fields.get(name) ?? this.#addField(name)
    if (field === undefined) return false
    const series = field.series.get(topic) ?? this.#addSeries(field, topic)
    if (series === undefined) return false
    if (series.last !== undefined) field.compare(value, series.last)
    series.set(value)
    return true
  }

  /**
   * The series of a field and a topic that somebody wants to see; where there is no room, another one goes, but none of these fields. Undefined for a topic
   * that is too long.
   */
  pin(topic, name, kept = []) {
    if (topic.length > limits.topic) return undefined
    if (!this.fields.has(name) && this.fields.size >= limits.fields)
      this.fields.delete(this.names().findLast((other) => !kept.includes(other)))
    const field = this.fields.get(name) ?? this.#addField(name)
    const known = field?.series.get(topic)
    if (known !== undefined || field === undefined) return known
    if (field.series.size >= limits.series) {
      field.more = true
      field.series.delete([...field.series.keys()].at(-1))
    }
    return this.#addSeries(field, topic)
  }

  /** A value of a series from before, at a time in milliseconds. */
  fill(series, at, value) {
    const index = this.times.findIndex((time) => time * 1000 >= at)
    if (index < 0) series.set(value)
    else series.fill(index, value)
  }

  /** What comes next is not to be joined to what was before. */
  interrupt() {
    this.#interrupted = true
  }

  /** A tick: takes the values that were set. */
  commit(now) {
    this.#addTime(now)
    for (const series of this.#all()) series.commit(now)
    if (this.#interrupted) {
      this.#interrupted = false
      this.#addTime(now)
      for (const series of this.#all()) series.values.push(null)
    }
    this.#forget(now)
  }

  /** Names of fields, those first that are worth a chart: not what only ever rises, as counters and clocks do. */
  names() {
    const fields = [...this.fields.values()]
    return [
      ...fields.filter(({ rising }) => !rising),
      ...fields.filter(({ rising }) => rising),
    ].map(({ name }) => name)
  }

  clear() {
    this.times = []
    this.fields.clear()
  }

  *#all() {
    for (const field of this.fields.values()) yield* field.series.values()
  }

  // Clocks are set back; a chart needs time to go on.
  #addTime(now) {
    this.times.push(Math.max(now / 1000, (this.times.at(-1) ?? 0) + 0.001))
  }

  #addField(name) {
    if (this.fields.size >= limits.fields) return undefined
    const field = new Field(name)
    this.fields.set(name, field)
    return field
  }

  #addSeries(field, topic) {
    if (field.series.size >= limits.series) {
      field.more = true
      return undefined
    }
    const series = new Series(topic, this.times.length)
    field.series.set(topic, series)
    return series
  }

  #forget(now) {
    const { times } = this
    const recent = times.findIndex((time) => time * 1000 > now - limits.window)
    const places = Math.max(0, recent, times.length - limits.points)
    if (places === 0) return
    times.splice(0, places)
    for (const [name, field] of this.fields) {
      for (const [topic, series] of field.series) {
        series.forget(places)
        if (series.count === 0) field.series.delete(topic)
      }
      if (field.series.size === 0) this.fields.delete(name)
    }
  }
}

/**
 * Short names for topics that are shown together: what they have in common at their beginning and end is left out, and told once as a pattern.
 */
export function labels(topics) {
  const levels = topics.map((topic) => topic.split('/'))
  const shortest = Math.min(...levels.map(({ length }) => length))
  const [one] = levels
  if (topics.length < 2)
    return {
      pattern: topics[0] ?? '',
      names: topics.map((topic) => topic.split('/').slice(-2).join('/')),
    }
  const common = (at) => levels.every((each) => each.at(at) === one.at(at))
  let start = 0
  while (start < shortest - 1 && common(start)) start += 1
  let end = 0
  while (end < shortest - start - 1 && common(-1 - end)) end += 1
  const names = levels.map((each) => each.slice(start, each.length - end).join('/'))
  return { pattern: [...one.slice(0, start), '…', ...one.slice(one.length - end)].join('/'), names }
}
