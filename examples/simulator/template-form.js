/**
 * The fields for templates of topics and payloads: what is wrong with them is said at once, and else what the first device would publish.
 *
 * The page keeps its policy: nothing that is typed here is ever more than text.
 */
import { write } from './figures.js'
import {
  compile,
  placeholders,
  problemOf,
  standardPayload,
  standardTopic,
  topicProblemOf,
} from './template.js'

const example = { device: 1, n: 1, qos: 1, prefix: 'simulator/1a2b3c', random: () => 0.5 }

/** Prepares the fields of a form; `about` and `list` are where the example and the placeholders stand. */
export function setUpTemplates({ topic, template, payload }, { about, list, box }) {
  topic.value = standardTopic
  template.value = standardPayload
  for (const [name, [meaning]] of Object.entries(placeholders)) {
    const [term, description] = ['dt', 'dd'].map((tag) => document.createElement(tag))
    term.textContent = `{${name}}`
    description.textContent = meaning
    list.append(term, description)
  }
  // A field that is folded away cannot say what is wrong with it.
  const unfold = () => {
    box.open = true
  }
  const show = () => {
    const isMine = payload.value === 'template'
    template.disabled = !isMine
    const problems = [topicProblemOf(topic.value), isMine ? problemOf(template.value) : undefined]
    for (const [index, field] of [topic, template].entries())
      field.setCustomValidity(problems[index] ?? '')
    const problem = problems.find((each) => each !== undefined)
    about.className = problem === undefined ? 'note' : 'note bad'
    write(
      about,
      problem ?? `For example ${exampleOf(topic.value, isMine ? template.value : undefined)}`,
    )
  }
  for (const field of [topic, template]) field.addEventListener('input', show)
  payload.addEventListener('change', () => {
    if (payload.value === 'template') unfold()
    show()
  })
  for (const field of [topic, template]) field.addEventListener('invalid', unfold)
  show()
}

function exampleOf(topic, template) {
  const known = { ...example, at: performance.now(), date: Date.now() }
  const shown = compile(topic)(known).slice(0, 200)
  return template === undefined
    ? `topic ${shown}`
    : `topic ${shown}, payload ${compile(template)(known).slice(0, 300)}`
}
