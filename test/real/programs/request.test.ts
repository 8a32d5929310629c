/** A service that answers requests, and one that asks, over restarts of their broker: every request is answered, with its own answer. */
import { beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { withMosquitto } from '../brokers.js'
import { Restartable } from '../restartable.js'
import { Program } from './program.js'

const count = 1600

beforeAll(requireDist)

withMosquitto(['TCP'], () => {
  it(`${count} requests over three restarts of the broker are answered, each with its own answer`, async () => {
    const broker = await Restartable.start()
    const responder = new Program('responder.js', { MQTT_URL: broker.url })
    let requester: Program | undefined
    try {
      await responder.says(({ state }) => state === 'ready', 'a responder')
      requester = new Program('requester.js', { MQTT_URL: broker.url, COUNT: String(count) })
      for (const restart of [1, 2, 3]) {
        const before = requester.reports.length
        await requester.says(({ number }) => Number(number) >= restart * 300, 'answers', before)
        await broker.kill()
        await broker.live()
      }
      const { code, last, errors } = await requester.ends()
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      // Those that were under way when the broker died.
      expect(last?.['repeats']).toBeLessThanOrEqual(3 * 4 * 2)
      const answers = requester.reports
        .slice(0, -1)
        .sort((one, other) => Number(one['number']) - Number(other['number']))
      expect(answers).toEqual(
        Array.from({ length: count }, (_, number) => ({ number, square: number ** 2 })),
      )
      responder.signal('SIGTERM')
      expect(await responder.ends()).toEqual({ code: 0, last: { state: 'closed' }, errors: '' })
    } finally {
      requester?.signal('SIGKILL')
      responder.signal('SIGKILL')
      await broker.stop()
    }
  })
})
