/** A thousand devices in one process, some of them unknown to the broker: they fail, alone and with the reason. */
import { beforeAll, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { requireDist } from '../../package/fixture.js'
import { withMosquitto } from '../brokers.js'
import { Restartable } from '../restartable.js'
import { eventually, within } from '../waiting.js'
import { Program } from './program.js'

const devices = 1000
const unknown = 10
const readings = 5
const known = devices - devices / unknown

beforeAll(requireDist)

withMosquitto(['TCP'], () => {
  it(`${known} of ${devices} devices publish, the others are told why they cannot, and the process ends`, async () => {
    const broker = await Restartable.start({ passwords: { device: 'secret' } })
    const observer = new Client(broker.url, {
      username: 'device',
      password: 'secret',
      receiveMaximum: 65_535,
    })
    const seen = new Map<string, string>()
    try {
      await within(observer.connect(), 'connecting')
      await observer.listen(
        'fleet/+',
        (message) => {
          seen.set(message.topic, `${seen.get(message.topic) ?? ''}${message.text()}`)
        },
        { qos: 1 },
      )
      const fleet = new Program('fleet.js', {
        MQTT_URL: broker.url,
        DEVICES: String(devices),
        UNKNOWN: String(unknown),
        READINGS: String(readings),
      })
      const refusals = { 'ERR_CONNECT_REFUSED Not authorized': devices / unknown }
      expect(await fleet.ends()).toEqual({
        code: 0,
        last: { connected: known, refusals },
        errors: '',
      })
      await eventually(
        () => seen.size === known && [...seen.values()].every((texts) => texts.length === readings),
        'every reading',
      )
      expect(new Set(seen.values())).toEqual(new Set(['01234']))
      expect(
        [...seen.keys()].filter((topic) => Number(topic.split('/')[1]) % unknown === 0),
      ).toEqual([])
    } finally {
      observer.destroy()
      await broker.stop()
    }
  })
})
