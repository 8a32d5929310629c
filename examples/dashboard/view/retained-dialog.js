/**
 * Removes retained messages: they are looked for and listed first.
 */
import { textOf } from '../connection.js'
import { oneLine, short } from '../model/payload.js'
import { byId, make, setText } from './dom.js'

/** Topics that are listed. */
const most = 100

/** Sets up the dialog. `suggested()` gives the filter that it opens with. */
export function setUpRetained(connection, { suggested }) {
  const dialog = byId('retained')
  const { filter } = byId('retained-form').elements
  const remove = byId('retained-remove')
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
  const attempt = async (work) => {
    try {
      await work()
    } catch (error) {
      show(textOf(error))
    }
  }
  const look = async () => {
    show('Looking …')
    const topics = await connection.retainedIn(filter.value)
    const count = topics.length === 1 ? '1 message is' : `${short(topics.length)} messages are`
    show(`${count} retained there.`, topics)
  }

  byId('open-retained').addEventListener('click', () => {
    filter.value = suggested()
    show('')
    dialog.showModal()
  })
  byId('retained-form').addEventListener('submit', (event) => {
    event.preventDefault()
    attempt(look)
  })
  remove.addEventListener('click', () =>
    attempt(async () => {
      const topics = found
      show('Removing …')
      await connection.removeRetained(topics)
      // Some brokers answer a refused publish as if they had taken it.
      await look()
    }),
  )
  byId('retained-close').addEventListener('click', () => dialog.close())
}
