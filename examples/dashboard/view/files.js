/**
 * Files: what is kept is saved, and a recording is opened in place of what a broker sends.
 */
import { oneLine, short, size } from '../model/payload.js'
import { csvOf, limits, lineOf, recordsIn } from '../model/records.js'
import { byId, make, setText } from './dom.js'

/** Sets up the buttons. `listed()` gives the topics in the table, `opened()` is called before a recording is shown. */
export function setUpFiles(recorder, { listed, opened }) {
  const recordsOf = (topics) =>
    topics
      .flatMap((topic) => recorder.history.of(topic))
      .sort((one, other) => one.at - other.at || one.number - other.number)
  const save = (name, type, parts) => {
    const href = URL.createObjectURL(new Blob(parts, { type }))
    make('a', { href, download: name }).click()
    setTimeout(() => URL.revokeObjectURL(href), 60_000)
  }
  const selected = () => recorder.kept.reverse()
  const saveLines = (records) => {
    save('mqwire.jsonl', 'application/jsonl', records.map(lineOf))
    setText(byId('file-note'), `${short(records.length)} messages saved.`)
  }
  byId('save-listed').addEventListener('click', () => saveLines(recordsOf(listed())))
  byId('save-topic').addEventListener('click', () => saveLines(selected()))
  byId('save-numbers').addEventListener('click', () =>
    save('mqwire.csv', 'text/csv', [csvOf(selected())]),
  )
  const input = byId('file')
  byId('open-file').addEventListener('click', () => input.click())
  input.addEventListener('change', async () => {
    const [file] = input.files
    input.value = ''
    if (file !== undefined) setText(byId('file-note'), await open(file))
  })

  async function open(file) {
    const name = oneLine(file.name)
    if (file.size > limits.file)
      return `${name} has ${size(file.size)}; ${size(limits.file)} can be opened.`
    const rest = () => new Promise((resolve) => setTimeout(resolve))
    const { records, wrong, problem } = await recordsIn(await file.text(), rest)
    if (wrong === limits.wrong)
      return `${name} is no recording: ${oneLine(problem, 120)}, and so on.`
    const lines = wrong === 1 ? '1 line is' : `${short(wrong)} lines are`
    const others = wrong === 0 ? '' : `; ${lines} no message: ${oneLine(problem, 120)}`
    if (records.length === 0) return `${name} has no messages${others}.`
    opened()
    recorder.load(records)
    return `${short(records.length)} messages of ${name}${others}.`
  }
}
