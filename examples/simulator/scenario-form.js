/**
 * The fields for scenarios: which one, its description to edit, and what is wrong with that, said while it is typed.
 *
 * The page keeps its policy: nothing of a description is ever more than text.
 */
import { write } from './figures.js'
import { save } from './saving.js'
import { formatted, read, scenarioOf, scenarios } from './scenario.js'

/** Milliseconds after a key until the description is read. */
const pause = 150
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** Prepares the fields of a form. `parts` has the elements around them, `most` is how many devices a scenario may have. */
export class ScenarioForm {
  #fields
  #parts
  #most
  #timer
  // What the user wrote; the devices of a fleet meanwhile; those that the description has itself.
  #own
  #fleetDevices
  #count

  constructor(fields, parts, most) {
    this.#fields = fields
    this.#parts = parts
    this.#most = most
    for (const [name, { about }] of scenarios) addOption(fields.what, name, name, about)
    addOption(fields.what, 'own', 'your own', 'A description that you open or write')
    fields.what.addEventListener('change', () => this.#choose())
    fields.description.addEventListener('input', () => {
      this.#own = fields.description.value
      fields.what.value = 'own'
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.check(), pause)
    })
    for (const field of [fields.devices, fields.seed, fields.prefix])
      field.addEventListener('input', () => this.isChosen && this.check())
    // A field that is folded away cannot say what is wrong with it.
    fields.description.addEventListener('invalid', () => {
      parts.box.open = true
    })
    fields.file.addEventListener('change', () => this.#openFile())
    parts.format.addEventListener('click', () => this.#format())
    parts.save.addEventListener('click', () =>
      save('scenario.json', 'application/json', fields.description.value),
    )
    this.#showMode()
  }

  /** Whether the devices do what a scenario says. */
  get isChosen() {
    return this.#fields.what.value !== 'fleet'
  }

  /** The description, where it is not one that ships. */
  get own() {
    return this.#fields.what.value === 'own' ? this.#fields.description.value : undefined
  }

  /** Takes a description that came by a link. */
  set own(text) {
    this.#own = text
    this.#fields.what.value = 'own'
    this.#choose()
  }

  /** The scenario as a fleet takes it; undefined when none is chosen. */
  make() {
    if (!this.isChosen) return undefined
    return scenarioOf(this.#fields.description.value, { ...this.#options, began: Date.now() })
  }

  /** Says what the description is, or what is wrong with it. True when it can be used. */
  check() {
    clearTimeout(this.#timer)
    const { description, devices } = this.#fields
    const found = read(description.value, this.#options, this.#most)
    const { problem } = found
    description.setCustomValidity(problem ?? '')
    this.#parts.about.className = problem === undefined ? 'note' : 'note bad'
    write(this.#parts.about, problem ?? textOf(found))
    if (found.count !== undefined && found.count !== this.#count) {
      this.#count = found.count
      devices.value = String(Math.min(found.count, this.#most))
    }
    return problem === undefined
  }

  get #options() {
    const { seed, prefix, devices } = this.#fields
    const total = devices.value === '' ? this.#count : Number(devices.value)
    // The first look at a description is at its own count.
    const wanted = this.#count === undefined ? undefined : total
    return { seed: Number(seed.value), prefix: prefix.value, devices: wanted }
  }

  #choose() {
    const { what, description } = this.#fields
    const text = scenarios.get(what.value)
    if (text !== undefined) description.value = formatted(text)
    else if (what.value === 'own') description.value = this.#own ?? description.value
    this.#count = undefined
    this.#showMode()
    if (this.isChosen) this.check()
    if (what.value === 'own') this.#parts.box.open = true
  }

  #showMode() {
    const { devices } = this.#fields
    if (this.isChosen) this.#fleetDevices ??= devices.value
    else if (this.#fleetDevices !== undefined) {
      devices.value = this.#fleetDevices
      this.#fleetDevices = undefined
    }
    devices.max = String(this.isChosen ? this.#most : 1000)
    this.#parts.showMode(this.isChosen ? 'scenario' : 'fleet')
  }

  async #openFile() {
    const { file, description } = this.#fields
    const [chosen] = file.files
    if (chosen === undefined) return
    const isTooLong = chosen.size > description.maxLength
    const text = isTooLong ? '' : await chosen.text()
    file.value = ''
    if (isTooLong) {
      this.#parts.about.className = 'note bad'
      write(
        this.#parts.about,
        `${chosen.name} has ${whole.format(chosen.size)} bytes; at most ${whole.format(description.maxLength)} can be opened.`,
      )
    } else this.own = text
  }

  #format() {
    const { description } = this.#fields
    try {
      description.value = formatted(JSON.parse(description.value))
      if (this.own !== undefined) this.#own = description.value
    } catch {
      // What is wrong stands below already.
    }
    this.check()
    description.focus()
  }
}

function addOption(select, value, text, title) {
  const option = document.createElement('option')
  Object.assign(option, { value, title })
  option.textContent = text
  select.append(option)
}

function textOf({ name, about, kinds, perSecond, example }) {
  const rate = perSecond < 10 ? perSecond.toFixed(1) : whole.format(perSecond)
  const first =
    example === undefined
      ? ''
      : ` The first: ${example.topic.slice(0, 200)} ${example.payload.slice(0, 300)}`
  return `${about === '' ? name : about}. ${kinds.join(', ')}; up to ${rate} messages a second.${first}`
}
