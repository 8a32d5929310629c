/**
 * The payload of one message: in the format that suits it or that the user wants, with its numbers to click, or with what changed in it.
 */
import { cutNote, limits, pictureType, promisedFormat, typesIn } from '../model/decoding.js'
import { differences } from '../model/differences.js'
import { numbersIn } from '../model/numbers.js'
import { formatOf, oneLine, pieces, render, size } from '../model/payload.js'
import { byId, exactTime, make, setText } from './dom.js'

/** Topics whose format is remembered. */
const remembered = 1000

const isEqual = (one, other) =>
  one.length === other.length && one.every((byte, at) => byte === other[at])

function makeNumber({ text, field }) {
  const name = oneLine(field)
  return make(
    'button',
    {
      type: 'button',
      className: 'number',
      title: `draw ${name} in a chart`,
      ariaLabel: `${text}, draw ${name} in a chart`,
      dataset: { field },
    },
    text,
  )
}

/** The payload. */
export class PayloadView {
  #payload = byId('payload')
  #radios = [...document.getElementsByName('format')]
  /** Topic to the format that the user wants, and to the type of its messages in Protobuf. */
  #formats = new Map()
  #types = new Map()
  /** Name of a message type to what describes it. */
  #schemas = new Map()
  #shown
  #before
  /** A picture is being decoded. */
  #isLoading = false
  /** The pointer is down on the payload: what it is on must not go. */
  #held = false

  /** `charted(topic, field)` is called with a number that the user wants to see over time; it gives what came of it. */
  constructor({ charted }) {
    const payload = this.#payload
    payload.addEventListener('pointerdown', () => {
      this.#held = true
    })
    for (const type of ['pointerup', 'pointercancel'])
      addEventListener(type, () =>
        setTimeout(() => {
          this.#held = false
        }),
      )
    payload.addEventListener('click', ({ target }) => {
      const { field } = target.closest('button')?.dataset ?? {}
      if (field !== undefined)
        setText(byId('payload-note'), charted(this.#shown.message.topic, field))
    })
    // Scrolled with the keyboard.
    payload.tabIndex = 0
    byId('changes').addEventListener('change', () => this.#draw())
    for (const radio of this.#radios)
      radio.addEventListener('change', () => this.#remember(this.#formats, radio.value))
    byId('descriptor').addEventListener('change', ({ target }) => this.#open(target))
    const type = byId('message-type')
    type.addEventListener('change', () => this.#remember(this.#types, type.value))
  }

  /** The pointer or the keyboard is on it. */
  get isInUse() {
    const { activeElement } = document
    // The payload itself can have the focus to be scrolled; its numbers are there to be used.
    const isOnNumber = this.#payload !== activeElement && this.#payload.contains(activeElement)
    return this.#held || isOnNumber || this.#payload.matches(':hover')
  }

  /** Shows the payload of a record; `before` is the record before it, if it is kept. */
  show(record, before) {
    this.#shown = record
    this.#before = before
    this.#draw()
  }

  #remember(choices, value) {
    const { topic } = this.#shown.message
    choices.delete(topic)
    choices.set(topic, value)
    if (choices.size > remembered) choices.delete(choices.keys().next().value)
    this.#draw()
  }

  async #open(input) {
    const [file] = input.files
    input.value = ''
    if (file === undefined) return
    try {
      if (file.size > limits.descriptor)
        throw new Error(`it has more than ${size(limits.descriptor)}`)
      this.#schemas = typesIn(new Uint8Array(await file.arrayBuffer()))
      byId('message-type').replaceChildren(
        ...[...this.#schemas.keys()].map((name) =>
          make('option', { value: name }, oneLine(name, 80)),
        ),
      )
      this.#draw()
    } catch (error) {
      setText(byId('payload-note'), `${oneLine(file.name)} is no descriptor: ${error.message}`)
    }
  }

  #typeOf(topic) {
    const list = byId('message-type')
    const name = this.#types.get(topic) ?? list.value
    if (this.#schemas.has(name) && list.value !== name) list.value = name
    return this.#schemas.get(list.value)
  }

  #draw() {
    const { message } = this.#shown
    const { topic, payload, properties } = message
    const format =
      this.#formats.get(topic) ??
      promisedFormat(payload, properties.contentType) ??
      formatOf(payload)
    this.#radios.find(({ value }) => value === format).checked = true
    byId('protobuf').hidden = format !== 'protobuf'
    byId('message-type').closest('label').hidden = this.#schemas.size === 0
    if (format === 'image') return this.#showPicture(payload)
    const schema = format === 'protobuf' ? this.#typeOf(topic) : undefined
    const shown = render(payload, format, properties.contentType, schema)
    if (byId('changes').checked) return this.#showChanges(shown, format, schema)
    const fields = new Set(numbersIn(message).map(([name]) => name))
    this.#payload.replaceChildren(
      ...pieces(payload, format, shown.text).map((piece) =>
        fields.has(piece.field) ? makeNumber(piece) : document.createTextNode(piece.text),
      ),
    )
    const canDraw = fields.size > 0 && ['text', 'json'].includes(format)
    setText(
      byId('payload-note'),
      shown.note || (canDraw ? 'A click on a number draws it in a chart.' : ''),
    )
  }

  #showPicture(bytes) {
    const type = pictureType(bytes)
    if (type === undefined || bytes.length > limits.picture) {
      this.#payload.replaceChildren()
      const problem = cutNote(bytes, limits.picture) || 'This is no PNG, JPEG, GIF or WebP.'
      return setText(byId('payload-note'), problem)
    }
    // A large picture takes its time: one after the other.
    if (this.#isLoading) return
    this.#isLoading = true
    const shown = this.#shown
    const src = URL.createObjectURL(new Blob([bytes], { type }))
    const image = make('img', { alt: `Payload, ${type}` })
    const done = (text) => {
      URL.revokeObjectURL(src)
      this.#isLoading = false
      if (image.isConnected) setText(byId('payload-note'), text)
      if (this.#shown !== shown) this.#draw()
    }
    image.addEventListener('load', () =>
      done(`${type}, ${image.naturalWidth} × ${image.naturalHeight}`),
    )
    image.addEventListener('error', () => done(`This ${type} cannot be shown.`))
    this.#payload.replaceChildren(image)
    image.src = src
  }

  /** Marks what the message before did not have, and what it had. */
  #showChanges({ text, note }, format, schema) {
    const before = this.#before
    if (before === undefined) {
      this.#payload.replaceChildren(text)
      return setText(byId('payload-note'), `${note} No message before it is kept.`.trim())
    }
    const { payload, properties } = before.message
    const old = render(payload, format, properties.contentType, schema).text
    const found = differences(old, text)
    const tags = { '+': 'ins', '-': 'del', ' ': 'span' }
    this.#payload.replaceChildren(...found.map((piece) => make(tags[piece.mark], {}, piece.text)))
    const seen = isEqual(payload, this.#shown.message.payload)
      ? 'As the message before.'
      : found.some(({ mark }) => mark !== ' ')
        ? `Since the message before, ${exactTime(before.at)}.`
        : 'It differs from the message before, but not in what is shown.'
    setText(byId('payload-note'), `${note} ${seen}`.trim())
  }
}
