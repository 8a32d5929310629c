/**
 * A day of a gateway, in half a minute: a line of sensors, a broker that comes and goes, most of a day without network, and a plug that is pulled.
 *
 *     npm run gateway
 *
 * The program to copy is `gateway.js`. This one is the world around it: it starts the gateway as a process of its own, feeds it, kills it (SIGKILL), takes
 * the broker away and brings it back, and counts at the other end. The exit code is 0 when nothing that was taken is lost, and nothing of QoS 2 came twice.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf } from '../arguments.js'
import { events, hoursOfDay, leastBetween, timeOfDay } from './day.js'
import { GatewayProcess } from './gateway-process.js'
import { Line } from './line.js'
import { Plant } from './plant.js'
import { ProgressBar, textOf } from './progress.js'
import { report, Tally } from './tally.js'

/** Milliseconds that the last deliveries may take. */
const patience = 30_000
/** Milliseconds that may pass at once. */
const longestStep = 50

const { values } = argumentsOf({
  usage: 'npm run gateway -- [options]',
  about:
    'A gateway takes readings from a line of sensors through a day without network and a pulled plug, and every reading is counted at the end.',
  options: {
    seconds: { value: 'N', number: [1, 86_400], initial: 30, text: 'how long the day takes' },
    rate: {
      value: 'N',
      number: [1, 1000],
      initial: 200,
      text: 'readings a second of the whole line',
    },
    quick: { text: 'a day in 6 seconds' },
  },
  notes: [
    'Exit code: 0 nothing was lost and nothing of QoS 2 came twice, 1 something was or did, 2 wrong arguments.',
  ],
})

const hour = (values.quick ? 6000 : values.seconds * 1000) / hoursOfDay
const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-gateway-'))
const bar = new ProgressBar(process.stdout)
const tally = new Tally()
const plant = await Plant.open((reading) => tally.handleDelivered(reading))
const line = new Line(values.rate)
/** What the gateway said last of its queue; undefined while it is off. */
let status

const gateway = new GatewayProcess({ url: plant.url, folder }, (event) => {
  if (event.taken !== undefined) tally.handleTaken(event.taken)
  else if (event.gaveUp !== undefined) tally.handleGivenUp(event)
  else if (event.status !== undefined) {
    status = event.status
    bar.show(status)
  }
})

/** What may happen in the day. */
const actions = {
  start: () => gateway.start(),
  async pullPlug() {
    await gateway.kill()
    status = undefined
  },
  networkGoes: () => plant.networkGoes(),
  networkComes: () => plant.networkComes(),
}

/** The day: hours pass, and the line reads meanwhile. They pass in `pass()` only, and more slowly on a machine that is busy. */
class Day {
  #elapsed = 0

  get now() {
    return Math.min(hoursOfDay, this.#elapsed / hour)
  }

  async pass(isOver) {
    for (let last = performance.now(); ; ) {
      this.#elapsed += Math.min(longestStep, performance.now() - last)
      last = performance.now()
      const { now } = this
      for (const reading of line.readings(now * hour, timeOfDay(now))) {
        tally.handleRead()
        gateway.feed(reading)
      }
      if (isOver(now)) return
      await sleep(10)
    }
  }
}

async function live() {
  const day = new Day()
  let last = -leastBetween
  for (const { at, when = () => true, action, text } of events) {
    // One that came late leaves room for the next.
    const due = Math.max(at, last + leastBetween)
    await day.pass((now) => now === hoursOfDay || (now >= due && when(status)))
    last = day.now
    const progress = process.stdout.isTTY || status === undefined ? '' : ` (${textOf(status)})`
    bar.print(`${timeOfDay(day.now)}  ${text}${progress}`)
    await actions[action]()
  }
  await day.pass((now) => now === hoursOfDay)
  bar.print(
    `${timeOfDay(hoursOfDay)}  The line stops. The gateway delivers what is left, and ends.`,
  )
  const code = await gateway.finish(patience)
  const end = performance.now() + patience
  while (tally.lost > 0 && performance.now() < end) await sleep(20)
  return code === 0
}

async function stop() {
  bar.end()
  gateway.kill()
  await plant.close()
  await rm(folder, { recursive: true, force: true })
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await stop()
    process.exit(130)
  })
}

try {
  const ended = await live()
  bar.end()
  console.log(`\n${report(tally)}`)
  if (!ended) console.log('FAILED: the gateway did not come to its end.')
  process.exitCode = ended && tally.isFlawless ? 0 : 1
} finally {
  await stop()
}
