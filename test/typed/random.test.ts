/** Payloads at random against a schema: nothing but the policy happens. 10,000 of them; 100,000 with MQWIRE_LONG=1. */
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import * as mq from '../../src/typed/index.js'
import { brokerOf, clientOn, until } from './rig.js'

it('random payloads: each is a value or counted, and the client stays', async () => {
  const broker = brokerOf()
  const client = await clientOn(broker, { memoryBudget: 256 * 1024 * 1024 })
  const other = await clientOn(broker)
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
    fc.record({ value: fc.double(), unit: fc.string() }).map((value) => new TextEncoder().encode(JSON.stringify(value))),
  )
  const payloads = fc.sample(payload, 5000).filter(({ length }) => length > 0)
  const wanted = process.env['MQWIRE_LONG'] === '1' ? 100_000 : 10_000
  const rounds = Math.ceil(wanted / payloads.length)
  let sent = 0
  for (let round = 0; round < rounds; round++) {
    // The broker keeps so many for a subscriber that is behind.
    for (let from = 0; from < payloads.length; from += 500) {
      const some = payloads.slice(from, from + 500)
      await Promise.all(some.map((bytes) => other.publish('r', bytes, { qos: 1 })))
      sent += some.length
      await until(() => told + values === sent, `all of ${sent}`)
    }
  }
  expect(sent).toBeGreaterThanOrEqual(wanted)
  expect(handling.invalid).toBe(told)
  expect(Math.min(told, values)).toBeGreaterThan(500)
  expect(client.state).toBe('connected')
}, 120_000)
