/** A dashboard that outlives its broker: `for await` goes on where it was. */
import { beforeAll, describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { requireDist } from '../../package/fixture.js'
import { startAedes, withMosquitto } from '../brokers.js'
import { Restartable } from '../restartable.js'
import { within } from '../waiting.js'
import { Program, type Report } from './program.js'

/** A broker that can be gone for a while. */
interface Mortal {
  readonly url: string
  live(): Promise<void>
  kill(): Promise<void>
}

beforeAll(requireDist)

async function measured(url: string, device: string, value: number): Promise<void> {
  const sensor = new Client(url)
  await within(sensor.connect(), 'a sensor connecting')
  await within(
    sensor.publish(`site/${device}/temperature`, String(value), { qos: 1, retain: true }),
    'a reading',
  )
  await sensor.disconnect()
}

function shows(values: Readonly<Record<string, number>>): (report: Report) => boolean {
  return (report) => JSON.stringify(report) === JSON.stringify({ state: 'connected', values })
}

async function run(broker: Mortal, sensorUrl: string): Promise<void> {
  await broker.kill()
  const page = new Program('dashboard.js', { MQTT_URL: broker.url })
  try {
    await page.says(({ state }) => state === 'connecting', 'no broker yet')
    await broker.live()
    await page.says(shows({}), 'a broker')
    await measured(sensorUrl, 'cellar', 12)
    await page.says(shows({ cellar: 12 }), 'the first reading')
    for (const round of [1, 2]) {
      const before = page.reports.length
      await broker.kill()
      await page.says(({ state }) => state === 'reconnecting', 'the loss of the broker', before)
      await broker.live()
      // Granted before anybody measures: this broker has forgotten its subscribers.
      await page.says(({ state }) => state === 'connected', 'the broker is back', before)
      await measured(sensorUrl, 'roof', 20 + round)
      await page.says(shows({ cellar: 12, roof: 20 + round }), 'the next reading')
    }
    page.signal('SIGTERM')
    expect(await page.ends()).toEqual({
      code: 0,
      last: { state: 'closed', values: { cellar: 12, roof: 22 } },
      errors: '',
    })
  } finally {
    page.signal('SIGKILL')
  }
}

const title =
  'a dashboard starts before its broker, shows every state, and goes on after each restart'

describe('aedes over WebSocket', () => {
  it(title, async () => {
    const broker = await startAedes()
    try {
      const mortal = {
        url: broker.urls.WebSocket ?? '',
        live: () => broker.live(),
        kill: () => broker.shutDown(),
      }
      await run(mortal, broker.urls.TCP ?? '')
    } finally {
      await broker.stop()
    }
  })
})

withMosquitto(['TCP'], () => {
  it(title, async () => {
    const broker = await Restartable.start()
    try {
      await run(broker, broker.url)
    } finally {
      await broker.stop()
    }
  })
})
