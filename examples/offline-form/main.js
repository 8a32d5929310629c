/**
 * The page of the form: what is typed goes into the outbox, and what the outbox says is shown. Start reading at `outbox.js`.
 *
 * `?url=ws://…` names the broker; without it, the last one that was named.
 */
import { firstOf, openOutbox } from './outbox.js'
import { View } from './view.js'

/** Notes that are shown of those that wait. */
const most = 50
/** Milliseconds between two looks whether the store is still there. */
const interval = 2000

const view = new View()

function brokerUrl() {
  const given = new URLSearchParams(location.search).get('url')
  if (given !== null) localStorage.setItem('broker', given)
  return given ?? localStorage.getItem('broker') ?? 'ws://127.0.0.1:5176/mqtt'
}

/** A store that a browser has evicted, or somebody has deleted, fails at the next call. Nothing that was in it can be had back. */
function fail(error) {
  const cause = error.cause?.name
  if (error.code !== 'ERR_STORE') view.complain(`The note was not saved: ${error.message}`)
  else if (cause === 'QuotaExceededError')
    view.complain('There is no room left in this browser. The note was not saved.')
  else if (cause === 'InvalidStateError')
    view.stop(
      'The browser has deleted the notes that were kept here. Those below that waited are lost: copy them.',
    )
  else view.stop(`Notes cannot be kept: ${error.message}`)
}

/** Shows what waits and what was refused. */
async function refresh(outbox, status = view.status) {
  try {
    const [waiting, refused] = await Promise.all([
      firstOf(outbox.queue.entries(), most),
      lettersOf(outbox),
    ])
    view.show(status, waiting, refused)
  } catch (error) {
    fail(error)
  }
}

async function lettersOf({ queue }) {
  const entries = []
  for await (const { entry, code } of queue.deadLetters.entries()) entries.push({ entry, code })
  return entries.slice(0, most).map(({ entry, code }) => ({
    id: entry.id,
    text: new TextDecoder().decode(entry.payload),
    code,
  }))
}

async function save(outbox, note) {
  try {
    const text = JSON.stringify(note)
    const { id, delivered } = await outbox.queue.publish('inspections/notes', text)
    view.saved()
    // What the broker refuses is among the dead letters.
    delivered.then(
      () => view.delivered({ id, text }),
      () => undefined,
    )
  } catch (error) {
    fail(error)
  }
}

async function start() {
  const outbox = await openOutbox('offline-form', brokerUrl(), {
    waits: () => view.waits(),
    stateChanged: (state) => view.state(state),
    failed: fail,
  })
  view.opened(outbox.client.state, (note) => save(outbox, note))
  view.onLetters(
    () => outbox.queue.deadLetters.replay(),
    () => outbox.queue.deadLetters.clear(),
    () => refresh(outbox),
  )
  // A deleted store tells nobody.
  setInterval(() => document.hidden || outbox.store.get('there').catch(fail), interval)
  // Some browsers ask the person: nothing waits for the answer.
  navigator.storage?.persist().then((granted) => view.persisted(granted))
  for await (const status of outbox.queue.status()) await refresh(outbox, status)
}

// Without it the page works all the same, while there is a server.
navigator.serviceWorker?.register('service-worker.js').catch(() => undefined)
start().catch((error) => view.stop(`The form could not be opened: ${error.message}`))
