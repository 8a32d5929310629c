/**
 * Removes retained messages: they are looked for and listed first. What is closed goes no further.
 */
import { textOf } from '../connection.js'
import { oneLine, short } from '../model/payload.js'
import { byId, make, setText } from './dom.js'

/** Topics that are listed. */
const most = 100

/** Sets up the dialog. `suggested()` gives the filter that it opens with, and whether to look at once: `{ filter, looks }`. */
export function setUpRetained(connection, { suggested }) {
  const dialog = byId('retained')
  const { filter } = byId('retained-form').elements
  const remove = byId('retained-remove')
  /** The filter that the dialog was opened with: a field cannot hold every topic. */
  let given
  /** Ends what goes on. */
  let abort = new AbortController()
  let found = []

  const show = (text, topics = []) => {
    found = topics
    const left = topics.length - most
    byId('retained-topics').replaceChildren(
      ...topics.slice(0, most).map((topic) => make('li', {}, oneLine(topic, 200))),
      ...(left > 0 ? [make('li', {}, `and ${short(left)} more`)] : []),
    )
    remove.hidden = topics.length === 0
    setText(remove, topics.length === 1 ? 'Remove it' : `Remove ${short(topics.length)}`)
    setText(byId('retained-note'), text)
  }
  /** Does this in place of what goes on. */
  const instead = async (work) => {
    abort.abort()
    abort = new AbortController()
    const { signal } = abort
    try {
      await work(signal)
    } catch (error) {
      if (!signal.aborted) show(textOf(error))
    }
  }
  const look = async (signal) => {
    show('Looking …')
    const wanted = (given ?? filter.value).replace(/^\$share\/[^/]*\//, '')
    const topics = await connection.retainedIn(wanted, signal)
    if (signal.aborted) return
    const count = topics.length === 1 ? '1 message is' : `${short(topics.length)} messages are`
    show(`${count} retained there.`, topics)
  }
  const removeAll = async (signal) => {
    const topics = found
    show('Removing …')
    let count = 0
    let refused
    for (const topic of topics) {
      try {
        await connection.removeRetained(topic, signal)
      } catch (error) {
        if (signal.aborted || error.code !== 'ERR_PUBLISH_REFUSED') throw error
        refused ??= `${oneLine(topic)}: ${textOf(error)}`
      }
      count += 1
      setText(byId('retained-note'), `${short(count)} of ${short(topics.length)} …`)
    }
    // Some brokers answer a refused publish as if they had taken it.
    await look(signal)
    if (refused !== undefined)
      setText(byId('retained-note'), `${byId('retained-note').textContent} ${refused}`)
    byId('retained-close').focus()
  }

  byId('open-retained').addEventListener('click', () => {
    const { filter: text, looks } = suggested()
    filter.value = text
    given = text
    show('')
    dialog.showModal()
    if (looks) instead(look)
  })
  byId('retained-form').addEventListener('submit', (event) => {
    event.preventDefault()
    instead(look)
  })
  remove.addEventListener('click', () => instead(removeAll))
  // What was found is of another filter.
  filter.addEventListener('input', () => {
    given = undefined
    instead(() => show(''))
  })
  byId('retained-close').addEventListener('click', () => dialog.close())
  dialog.addEventListener('close', () => abort.abort())
}
