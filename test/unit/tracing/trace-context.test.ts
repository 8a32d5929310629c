/** W3C Trace Context in User Properties: what is read of a hostile peer, and what is written. */
import { createTraceState, ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { getter, type Pairs, setter } from '../../../src/tracing/carrier.js'
import { traceContext } from '../../../src/tracing/index.js'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const good = `00-${traceId}-${spanId}-01`

const read = (...pairs: Pairs) =>
  trace.getSpanContext(traceContext.extract(ROOT_CONTEXT, pairs, getter))

it('reads what is well formed', () => {
  expect(read(['traceparent', good])).toEqual({
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  })
  expect(read(['a', 'b'], ['traceparent', good.replace(/01$/, '00')])?.traceFlags).toBe(
    TraceFlags.NONE,
  )
  // Flags that nobody knows are not passed on.
  expect(read(['traceparent', good.replace(/01$/, 'ff')])?.traceFlags).toBe(3)
  const { traceState } = read(['traceparent', good], ['tracestate', 'a=1,b=2']) ?? {}
  expect(traceState?.serialize()).toBe('a=1,b=2')
})

it('reads versions to come as far as they are known', () => {
  expect(read(['traceparent', `cc${good.slice(2)}`])?.spanId).toBe(spanId)
  expect(read(['traceparent', `cc${good.slice(2)}-what-is-new`])?.spanId).toBe(spanId)
  expect(read(['traceparent', `cc${good.slice(2)}.what`])).toBeUndefined()
})

it.each([
  '',
  '00',
  good.slice(0, -1),
  `${good}0`,
  `${good}-`,
  ` ${good}`,
  `${good} `,
  `ff${good.slice(2)}`,
  `0x${good.slice(2)}`,
  good.toUpperCase(),
  good.replaceAll('-', '_'),
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.slice(1)}g-${spanId}-01`,
  `00-${traceId}-${spanId}-0g`,
  `00-${traceId}${spanId}--01`.padEnd(55, '0'),
  `00-${traceId}-${spanId}-١١`,
  `cc${good.slice(2)}-${'x'.repeat(600)}`,
  '-'.repeat(55),
  '\u0000'.repeat(55),
  'x'.repeat(65_535),
])('leaves %j unread', (value) => {
  expect(read(['traceparent', value])).toBeUndefined()
})

it('leaves unread what is given twice, and lists that are too long', () => {
  expect(read(['traceparent', good], ['traceparent', good])).toBeUndefined()
  expect(read(['Traceparent', good])).toBeUndefined()
  const twice = read(['traceparent', good], ['tracestate', 'a=1'], ['tracestate', 'b=1'])
  const long = read(['traceparent', good], ['tracestate', `a=${'x'.repeat(512)}`])
  for (const span of [twice, long])
    expect([span?.spanId, span?.traceState]).toEqual([spanId, undefined])
  const many = Array.from({ length: 50 }, (_, index) => `a${index}=1`).join(',')
  expect(
    read(['traceparent', good], ['tracestate', many])?.traceState?.serialize().split(',').length,
  ).toBe(32)
})

it('writes what it reads', () => {
  const written: [string, string][] = []
  const span = {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    traceState: createTraceState('a=1'),
  }
  traceContext.inject(trace.setSpanContext(ROOT_CONTEXT, span), written, setter)
  expect(written).toEqual(Object.entries({ traceparent: good, tracestate: 'a=1' }))
  expect(read(...written)).toMatchObject({ traceId, spanId })
})

it('writes nothing without a span, or of one that is none', () => {
  const written: [string, string][] = []
  traceContext.inject(ROOT_CONTEXT, written, setter)
  traceContext.inject(
    trace.setSpanContext(ROOT_CONTEXT, { traceId: 'x', spanId: 'y', traceFlags: 0 }),
    written,
    setter,
  )
  expect(written).toEqual([])
})

it('names what there is', () => {
  expect(getter.keys(Object.entries({ a: '1', b: '2' }))).toEqual(['a', 'b'])
})
