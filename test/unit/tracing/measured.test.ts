/** Metrics: the counters of a client, as instruments. */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import { measured } from '../../../src/tracing/index.js'

let world: VirtualWorld
let provider: MeterProvider
let exporter: InMemoryMetricExporter
beforeEach(() => {
  world = new VirtualWorld()
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  provider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })],
  })
})
afterEach(async () => {
  await provider.shutdown()
  await world.close()
})

async function read(): Promise<Map<string, MetricData>> {
  exporter.reset()
  await provider.forceFlush()
  const all = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
  return new Map(all.map((metric) => [metric.descriptor.name, metric]))
}

const pointsOf = (metric: MetricData | undefined) =>
  metric?.dataPoints.map(({ value, attributes }) => [value, attributes])

it('gives every counter of stats()', async () => {
  const client = await world.connect('mqtt://b', { clientId: 'c', stats: true, keepAlive: 10 })
  measured(client, { meter: provider.getMeter('test') })
  await client.listen('t', () => undefined)
  for (let index = 0; index < 3; index++) await client.publish('t', 'x', { qos: 1 })
  const common = { 'messaging.system': 'mqtt', 'messaging.client.id': 'c' }
  const first = await read()
  expect(pointsOf(first.get('messaging.client.sent.messages'))).toEqual([
    [3, { ...common, 'messaging.operation.name': 'publish' }],
  ])
  expect(pointsOf(first.get('messaging.client.consumed.messages'))).toEqual([
    [3, { ...common, 'messaging.operation.name': 'process' }],
  ])
  expect(pointsOf(first.get('mqtt.client.connects'))).toEqual([[1, common]])
  expect(first.get('mqtt.client.bytes_sent')?.descriptor.unit).toBe('By')
  expect(first.get('mqtt.client.ping_round_trip')).toBeUndefined()
  await world.pass(11_000)
  world.cut()
  await world.pass(100)
  const second = await read()
  expect(pointsOf(second.get('mqtt.client.ping_round_trip'))?.[0]?.[0]).toBeLessThan(1)
  const failure = { ...common, 'error.type': expect.stringMatching('^ERR_') }
  expect(pointsOf(second.get('mqtt.client.failures'))).toContainEqual([expect.any(Number), failure])
  // One instrument for each field.
  expect(second.size).toBe(Object.keys(client.stats()).length)
})

it('asks nothing any more when it was ended', async () => {
  const client = await world.connect('mqtt://b')
  const stats = vi.fn(() => client.stats())
  const stop = measured({ clientId: 'c', stats }, { meter: provider.getMeter('test') })
  expect((await read()).size).toBeGreaterThan(20)
  expect(stats).toHaveBeenCalledTimes(1)
  stop()
  stop[Symbol.dispose]()
  await read()
  expect(stats).toHaveBeenCalledTimes(1)
})

it('goes to the global meter, which may be none, and refuses other options', async () => {
  const client = await world.connect('mqtt://b')
  measured(client)()
  expect(() => measured(client, { meter: 1 as never })).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
  )
})
