/**
 * A page that stays connected, and keeps a diary of what happens to it and to its client: `?url=…&id=…&keepAlive=…` say where, as whom and how.
 *
 * Each time it is shown, anew or again, it publishes so under `<id>/shown`: the one word of it that needs nobody to look into the page.
 */
import { Client, constant } from 'mqwire'

const diary = []
const note = (type, more = {}) => diary.push({ type, at: performance.now(), ...more })

for (const type of ['online', 'offline']) addEventListener(type, () => note(type))
for (const type of ['pageshow', 'pagehide'])
  addEventListener(type, ({ persisted }) => note(type, { persisted }))
for (const type of ['visibilitychange', 'freeze', 'resume'])
  document.addEventListener(type, () => note(type, { visibility: document.visibilityState }))

function code(error) {
  return (
    error && {
      code: error.code,
      cause: error.cause && { code: error.cause.code, reason: error.cause.reason },
    }
  )
}

const parameters = new URLSearchParams(location.search)
const id = parameters.get('id')

/** A lost connection is made good after a minute, or as soon as something happens that is worth a try. */
const client = new Client(parameters.get('url'), {
  clientId: id,
  cleanStart: false,
  keepAlive: Number(parameters.get('keepAlive')),
  firstConnect: 'wait',
  will: { topic: `${id}/will`, payload: 'gone', qos: 1 },
  reconnect: { backoff: constant(60_000) },
})
client.on('connect', () => note('connect'))
client.on('disconnect', ({ cause }) => note('disconnect', { error: code(cause) }))
client.on('late', ({ lateness }) => note('late', { lateness }))
client.on('connecterror', ({ error }) => note('connecterror', { error: code(error) }))

function tell(shown) {
  client
    .publish(`${id}/shown`, JSON.stringify(shown), { qos: 1 })
    .catch((error) => note('failed', { error: code(error) }))
}

addEventListener('pageshow', ({ persisted }) => {
  const [navigation] = performance.getEntriesByType('navigation')
  tell({ persisted, reasons: navigation.notRestoredReasons?.reasons?.map(({ reason }) => reason) })
})

/** Counts how often a timer of 50 ms fires. */
let ticks = 0
setInterval(() => {
  ticks += 1
}, 50)

globalThis.life = { diary, client, ticks: () => ticks }

const subscription = client.subscription(`${id}/in/#`, { qos: 1 })
client.connect().catch((error) => note('failed', { error: code(error) }))
await subscription.ready
note('ready')
for await (const message of subscription) note('message', { text: message.text() })
