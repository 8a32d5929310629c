/**
 * A test that lets an hour pass, in milliseconds: the water meter of meter.js loses its link for 20 minutes.
 *
 *     node --test examples/testing/meter.test.js
 *
 * It runs in Node's own test runner as it stands, and in vitest with the `test` of that.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualWorld } from 'mqwire/testing'
import { runMeter } from './meter.js'

const url = 'mqtt://broker.example' // leads to the broker of the world, as every URL does
const minute = 60_000

test('a meter comes back after 20 minutes without a link, with the readings that are fresh', async () => {
  const world = new VirtualWorld()
  const { broker, clock } = world
  const minutes = () => Math.floor(clock.now() / minute)

  // Somebody who watches, in the same world.
  const watcher = await world.connect(url)
  const seen = { status: [], readings: [] }
  await watcher.listen(
    'meters/7/status',
    (message) => seen.status.push(`${message.text()} at ${minutes()}`),
    { qos: 1 },
  )
  await watcher.listen(
    'meters/7/reading',
    (message) => seen.readings.push(message.json().at / minute),
    { qos: 1 },
  )

  const stop = new AbortController()
  const running = runMeter(url, stop.signal, world) // the world has `connect`, `sleep` and `now`
  await world.pass(10 * minute)
  assert.equal(seen.readings.length, 11)

  const mend = world.cut('meter-7')
  await world.pass(20 * minute)
  assert.deepEqual(seen.status, ['online at 0', 'offline at 15']) // the will, five minutes after the link was lost
  assert.equal(seen.readings.length, 11)

  mend()
  await world.until(() => broker.clients.has('meter-7')) // the next attempt of the backoff
  assert.ok(clock.now() <= 31 * minute)
  await world.pass(60 * minute - clock.now())
  // Readings of the minutes 11 to 20 were older than ten minutes when the link was back.
  assert.deepEqual(seen.readings, [...range(0, 10), ...range(21, 60)])

  stop.abort()
  assert.deepEqual(await running, { arrived: 51, expired: 10 })
  assert.deepEqual(seen.status, ['online at 0', 'offline at 15', 'online at 30', 'offline at 60'])
  assert.deepEqual(broker.violations, [])
  await world.close()
  assert.equal(clock.pending, 0) // the meter left no timer behind
})

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
