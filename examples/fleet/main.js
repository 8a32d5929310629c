/**
 * A fleet of processes that share jobs: one is killed and comes back, one is added, one leaves, all of it under load. At the end every job is counted.
 *
 *     npm run fleet
 *
 * The program to copy is `worker.js`. This one is the world around it: it brings a broker (or uses that of MQTT_URL), publishes the jobs, and kills. The
 * exit code is 0 when each job was done at least once, and those that were done twice were in the hands of the one that was killed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'mqwire'
import { MemoryBroker } from 'mqwire/testing'
import { argumentsOf } from '../arguments.js'
import { Count, report } from './count.js'
import { WorkerProcess } from './worker-process.js'

/** Jobs that a worker may have in its hands. */
const hand = 20
/** Milliseconds that the last jobs may take. */
const patience = 30_000

const { values } = argumentsOf({
  usage: 'npm run fleet -- [options]',
  about:
    'Three processes share jobs. One is killed and started again, one is added, one leaves, and every job is counted at the end.',
  options: {
    jobs: {
      value: 'N',
      number: [100, 1_000_000],
      whole: true,
      initial: 6000,
      text: 'how many jobs there are',
    },
    rate: { value: 'N', number: [10, 5000], whole: true, initial: 600, text: 'jobs a second' },
  },
  notes: [
    'MQTT_URL names a broker with shared subscriptions; without it one of mqwire/testing is used.',
    'Exit code: 0 no job was lost, and none done twice but by the kill; 1 otherwise, 2 wrong arguments.',
  ],
})

const broker = process.env.MQTT_URL
  ? undefined
  : new MemoryBroker({ maxQueuedMessages: 1_000_000, maxLog: 0 })
const listeners = await broker?.serve({ tcp: 0 })
const url = process.env.MQTT_URL || listeners.tcp.url
const count = new Count(hand)
const workers = new Map()
/** Of this run: a broker may know others. */
const run = process.pid.toString(36)

/** Starts one; fulfils when it is a member. */
async function start(name) {
  const ready = new Promise((resolve) => {
    const worker = new WorkerProcess({ id: `${name}-${run}`, url, hand }, (event) => {
      if (event.ready !== undefined) resolve()
      else if (event.done?.startsWith(run)) count.handleDone(event.done, name)
    })
    workers.set(name, worker)
    worker.ended.then(resolve)
  })
  await ready
}

const events = {
  0.2: [
    'worker-2 is killed',
    async () => {
      const worker = workers.get('worker-2')
      await worker.kill()
      count.handleKilled('worker-2', worker.began)
    },
  ],
  0.35: ['worker-2 is back, under its name', () => start('worker-2')],
  0.5: ['worker-4 is added', () => start('worker-4')],
  0.7: [
    'worker-1 leaves',
    async () => {
      await workers.get('worker-1').leave()
      workers.delete('worker-1')
      console.log('worker-1 has left')
    },
  ],
}

async function publishAll(sender) {
  const due = Object.entries(events).map(([share, event]) => [Number(share) * values.jobs, event])
  const changes = []
  const began = performance.now()
  for (let number = 0; number < values.jobs; number += 1) {
    while (due.length > 0 && number >= due[0][0]) {
      const [, [text, act]] = due.shift()
      console.log(`${String(number).padStart(7)} jobs: ${text}`)
      changes.push(act())
    }
    const ahead = began + (number * 1000) / values.rate - performance.now()
    if (ahead > 1) await sleep(ahead)
    await sender.writable
    // Each is told; a failure ends the program.
    sender
      .publish(`jobs/${run}-${number}`, '', { qos: 1 })
      .then(() => count.handlePublished(`${run}-${number}`))
  }
  await Promise.all(changes)
}

await Promise.all(['worker-1', 'worker-2', 'worker-3'].map(start))
console.log(`        three workers share ${values.jobs} jobs, ${values.rate} a second`)
const sender = await connect(url, { clientId: `sender-${run}` })
await publishAll(sender)
await sender.drain({ timeout: patience })
for (const end = performance.now() + patience; count.open > 0 && performance.now() < end; )
  await sleep(20)
const codes = await Promise.all([...workers.values()].map((worker) => worker.leave()))
await listeners?.close()
await broker?.close()
console.log(report(count))
process.exitCode = count.isFlawless && codes.every((code) => code === 0) ? 0 : 1
