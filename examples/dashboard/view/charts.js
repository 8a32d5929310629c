/**
 * The charts: two of fields found in payloads, each with a legend of switches, and one of how many messages come.
 */

import { oneLine, short } from '../model/payload.js'
import { labels, limits } from '../model/series.js'
import { byId, make, setText, timeOfDay } from './dom.js'
import { isDashed, LineChart, lineColour } from './line-chart.js'

/** Lines that are seen without being asked for. */
const shownAtFirst = 8

const collator = new Intl.Collator('en', { numeric: true })

const same = (one, other) =>
  one.length === other.length && one.every((value, index) => value === other[index])

/** The value of a series at a point: what came last before it. */
function valueAt({ values }, index) {
  for (let at = index; at >= 0 && values[at] !== null; at -= 1)
    if (values[at] !== undefined) return values[at]
  return undefined
}

/** A chart of one field, which may be chosen. */
class FieldChart {
  #store
  #rank
  #choice
  #pattern
  #legend
  #note
  #canvas
  #chart
  /** The field that the user has chosen, and the one that is shown. */
  #chosen
  #field
  /** Topic to whether its line is shown, where the user said so. */
  #switched = new Map()
  #keys = []
  /** The switches, in the order of the lines; the legend has them by name. */
  #switches = []
  #cursor

  /** Shows the field of this rank until another one is chosen. */
  constructor(host, store, rank) {
    this.#store = store
    this.#rank = rank
    this.#choice = make('select')
    this.#choice.addEventListener('change', () => {
      this.#chosen = this.#choice.value
      this.draw()
    })
    this.#pattern = make('span', { className: 'note pattern' })
    this.#canvas = make('div', { className: 'plot', role: 'img' })
    this.#legend = make('ul', { className: 'legend' })
    this.#note = make('p', { className: 'note' })
    const label = make(
      'label',
      { className: 'inline' },
      make('span', { className: 'hidden' }, `Field of chart ${rank + 1}`),
      this.#choice,
    )
    host.append(
      make('div', { className: 'head' }, make('h3', {}, label), this.#pattern),
      this.#canvas,
      this.#legend,
      this.#note,
    )
    this.#chart = new LineChart(this.#canvas, {
      onCursor: (index) => {
        this.#cursor = index
        this.#showValues()
      },
    })
  }

  draw() {
    this.#choose()
    const series = [...(this.#field?.series.values() ?? [])]
    const { pattern, names } = labels(series.map(({ topic }) => topic))
    setText(this.#pattern, oneLine(pattern))
    const keys = series.map(({ topic }) => topic)
    if (!same(keys, this.#keys)) this.#makeLegend(keys, names)
    const lines = series.map(({ topic, values, count }, index) => {
      return {
        key: topic,
        name: names[index],
        values,
        count,
        shown: this.#switched.get(topic) ?? index < shownAtFirst,
      }
    })
    this.#chart.draw(this.#store.times, lines)
    for (const [index, { key, shown }] of lines.entries()) {
      const button = this.#switches[index]
      button.ariaPressed = String(shown)
      const why = this.#switched.has(key)
        ? 'hidden by a click'
        : `hidden: ${shownAtFirst} are shown at first`
      button.title = `${oneLine(key, 200)}${shown ? '' : ` (${why}; a click shows it)`}`
    }
    this.#showValues()
    const seen = lines.filter(({ shown }) => shown).length
    this.#tell(lines.length - seen)
    this.#canvas.ariaLabel =
      series.length === 0
        ? 'No values yet'
        : `${this.#field.name} of ${seen} topics over time; the legend has the last values`
  }

  recolour() {
    this.#chart.recolour()
  }

  /** The name of the field that is shown. */
  get shown() {
    return this.#field?.name
  }

  /** Shows a field, and in it the line of a topic. */
  pin(topic, name) {
    this.#chosen = name
    this.#switched.set(topic, true)
    this.draw()
    this.#canvas.scrollIntoView({ block: 'nearest' })
  }

  #choose() {
    const names = this.#store.names()
    const name = names.includes(this.#chosen) ? this.#chosen : names[this.#rank]
    this.#field = this.#store.fields.get(name)
    const options = names.length > 0 ? [...names].sort() : ['no field yet']
    const offered = [...this.#choice.options].map(({ value }) => value)
    if (!same(options, offered))
      this.#choice.replaceChildren(
        ...options.map((value) => make('option', { value }, oneLine(value))),
      )
    const shown = name ?? (names.length > 0 ? '' : options[0])
    if (this.#choice.value !== shown) this.#choice.value = shown
  }

  /** Says what is not seen, and why. */
  #tell(hidden) {
    const missing =
      this.#store.fields.size > 0 ? 'Choose a field.' : 'Numbers in JSON payloads are drawn here.'
    const more = this.#field?.more ? `More topics have it; ${limits.series} are drawn. ` : ''
    const some = `${hidden} ${hidden === 1 ? 'line is' : 'lines are'} hidden: ${shownAtFirst} are shown at first, and a click hides or shows one.`
    setText(
      this.#note,
      this.#field === undefined ? missing : `${more}${hidden > 0 ? some : ''}`.trim(),
    )
  }

  #makeLegend(keys, names) {
    this.#keys = keys
    for (const topic of this.#switched.keys())
      if (!keys.includes(topic)) this.#switched.delete(topic)
    this.#switches = keys.map((topic, index) => {
      const swatch = make('span', {
        className: isDashed(index) ? 'swatch dashed' : 'swatch',
        ariaHidden: 'true',
      })
      swatch.style.setProperty('--colour', `var(${lineColour(index)})`)
      const button = make(
        'button',
        { type: 'button' },
        swatch,
        make('span', {}, oneLine(names[index], 40)),
        make('b'),
      )
      button.addEventListener('click', () => {
        this.#switched.set(topic, button.ariaPressed !== 'true')
        this.draw()
      })
      return button
    })
    const order = keys
      .map((topic, index) => [topic, this.#switches[index]])
      .sort(([one], [other]) => collator.compare(one, other))
    this.#legend.replaceChildren(...order.map(([, button]) => make('li', {}, button)))
  }

  // Of the point below the pointer, else the last ones.
  #showValues() {
    let index = 0
    for (const series of this.#field?.series.values() ?? []) {
      const value = this.#cursor === undefined ? series.last : valueAt(series, this.#cursor)
      setText(this.#switches[index].lastChild, short(value))
      index += 1
    }
    const time = this.#cursor === undefined ? undefined : this.#store.times[this.#cursor]
    this.#legend.dataset.time = time === undefined ? '' : timeOfDay(time * 1000)
  }
}

/** The chart of the message rate. */
class RateChart {
  #rates
  #canvas
  #chart
  #now

  constructor(host, rates) {
    this.#rates = rates
    this.#now = make('span', { className: 'note' })
    this.#canvas = make('div', {
      className: 'plot',
      role: 'img',
      ariaLabel: 'Messages a second over time',
    })
    host.append(
      make('div', { className: 'head' }, make('h3', {}, 'Messages a second'), this.#now),
      this.#canvas,
    )
    this.#chart = new LineChart(this.#canvas, {
      fromZero: true,
      onCursor: (index) => {
        const value = index === undefined ? undefined : this.#rates.values[index]
        setText(
          this.#now,
          value === undefined
            ? ''
            : `${timeOfDay(this.#rates.times[index] * 1000)}: ${short(Math.round(value))}`,
        )
      },
    })
  }

  draw() {
    const { times, values } = this.#rates
    this.#chart.draw(times, [
      { key: 'rate', name: 'messages a second', values, count: values.length, shown: true },
    ])
  }

  recolour() {
    this.#chart.recolour()
  }
}

/** All of them. */
export class Charts {
  #recorder
  #fields
  #charts
  /** The chart that gets the next field that is asked for. */
  #turn = 0

  constructor(recorder) {
    this.#recorder = recorder
    this.#fields = [0, 1].map(
      (rank) => new FieldChart(byId(`chart-${rank}`), recorder.series, rank),
    )
    this.#charts = [...this.#fields, new RateChart(byId('chart-rate'), recorder.rates)]
  }

  /** Draws a number of a topic. Gives what came of it, in a sentence. */
  show(topic, name) {
    const shown = this.#fields.map((chart) => chart.shown)
    if (!this.#recorder.chart(topic, name, shown))
      return 'There is no chart for a topic with such a long name.'
    const there = shown.indexOf(name)
    const index = there < 0 ? this.#turn : there
    if (there < 0) this.#turn = 1 - this.#turn
    this.#fields[index].pin(topic, name)
    return `${oneLine(name)} of ${oneLine(topic)} is in chart ${index + 1}.`
  }

  draw() {
    for (const chart of this.#charts) chart.draw()
  }

  recolour() {
    for (const chart of this.#charts) chart.recolour()
  }
}
