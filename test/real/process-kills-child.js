/**
 * The process that `process-kills.test.ts` kills: it publishes through a queue that shares the store of its client's session, and consumes. What it knows is
 * appended to files in the same turn, so that SIGKILL leaves no line that is not true.
 *
 * Its one argument is JSON: see `ChildSettings`. It tells its parent `connected`, and when the queue is empty `drained`; a message from its parent ends it.
 */
import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, constant } from 'mqwire'
import { openQueue } from 'mqwire/queue'
import { fileStore } from 'mqwire/store/file'
import { levelStore } from 'mqwire/store/level'

const { url, folder, run, store: kind, durability, publishes } = JSON.parse(process.argv[2])

const lines = (name) => {
  const file = openSync(`${folder}/${name}`, 'a')
  return (...words) => writeSync(file, `${words.join(' ')}\n`)
}
const [stored, consumed, dead, lost, trouble] = [
  'stored',
  'consumed',
  'dead',
  'lost',
  'trouble',
].map(lines)

const store = await { levelStore, fileStore }[kind](`${folder}/store`, { lock: 'wait', durability })
const client = await connect(url, {
  store,
  clientId: 'killed',
  firstConnect: 'wait',
  reconnect: { backoff: constant(20) },
  on: {
    sessionlost: () => lost(run),
    storecorrupt: ({ key }) => trouble('corrupt', key),
    error: ({ error }) => trouble('client', error),
    recovered: ({ topic, error }) =>
      error !== undefined && error.outcome !== 'unknown' && trouble('recovered', topic, error),
  },
})

const queue = await openQueue(client, { store, deadLetterStore: store })
queue.on('error', ({ error }) => trouble('queue', error))
queue.on('storecorrupt', ({ key }) => trouble('corrupt', key))
await client.listen(
  'in/#',
  async (message) => {
    consumed(message.id, message.text())
    // A kill finds some of them consumed and not acknowledged.
    if (Math.random() < 0.3) await sleep(Math.random() * 5)
  },
  { qos: 2, concurrency: 8 },
)
process.send('connected')

async function publishOn(worker) {
  for (let count = 0; publishes; count++) {
    const qos = (count % 2) + 1
    const text = `${run}-${worker}-${count}`
    await queue.publish(`out/${qos}`, text, { qos })
    stored(qos, text)
    if (Math.random() < 0.2) await sleep(3)
  }
}

process.once('message', async () => {
  for await (const { entry, code } of queue.deadLetters.entries())
    dead(code, new TextDecoder().decode(entry.payload))
  await queue.close()
  await client.disconnect()
  await store.close()
  process.exit(0)
})

await Promise.all([1, 2, 3, 4].map(publishOn))
while (queue.size > 0) await sleep(20)
process.send('drained')
