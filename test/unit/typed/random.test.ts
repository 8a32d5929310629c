/** Payloads at random against a schema: nothing but the policy happens. 100,000 of them, a tenth at QoS 1. */
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { pair } from './rig.js'

it('random payloads: each is a value or counted, and the client stays', async () => {
  const { client, other } = await pair({ memoryBudget: 256 * 1024 * 1024 })
  const schema = z.object({ value: z.number(), unit: z.string().optional() })
  const channel = mq.channel('r', mq.json(schema), { qos: 1 }).on(client)
  let told = 0
  let values = 0
  client.on('invalid', () => void told++)
  const handling = await channel.listen(({ value }) => {
    expect(typeof value.value).toBe('number')
    values += 1
  })
  const payload = fc.oneof(
    fc.json().map((text) => new TextEncoder().encode(text)),
    fc.uint8Array({ maxLength: 30 }),
    fc
      .record({ value: fc.double(), unit: fc.string() })
      .map((value) => new TextEncoder().encode(JSON.stringify(value))),
  )
  const payloads = fc.sample(payload, 5000).filter(({ length }) => length > 0)
  // What would take the time here is the runner, which maps each stack to the sources.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  let sent = 0
  try {
    for (let round = 0; sent < 100_000; round++) {
      // The broker keeps so many for a subscriber that is behind.
      for (let from = 0; from < payloads.length; from += 500) {
        const some = payloads.slice(from, from + 500)
        if (round % 10 === 0)
          await Promise.all(some.map((bytes) => other.publish('r', bytes, { qos: 1 })))
        else expect(some.every((bytes) => other.post('r', bytes))).toBe(true)
        sent += some.length
        await eventually(() => told + values === sent, `all of ${sent}`)
      }
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  expect(handling.invalid).toBe(told)
  expect(Math.min(told, values)).toBeGreaterThan(5000)
  expect(client.state).toBe('connected')
}, 120_000)
