/**
 * W3C Trace Context in User Properties: `traceparent` and `tracestate`, for programs without a
 * global propagator.
 *
 * Headers come from a peer: one that does not exactly follow the recommendation is ignored. Lengths
 * are limited, and no regular expression is applied to them.
 */
import {
  createTraceState,
  isSpanContextValid,
  type TextMapPropagator,
  trace,
} from '@opentelemetry/api'

const parent = 'traceparent'
const state = 'tracestate'
/** Characters of a `traceparent` of version 00. */
const parentLength = 55
/** Most characters of a `tracestate`, and of a `traceparent` of a later version. */
const mostCharacters = 512
/** Known flags: sampled, random. */
const knownFlags = 3

/** The W3C propagator, strict: a malformed, too long or repeated header is ignored. */
export const traceContext: TextMapPropagator = {
  fields: () => [parent, state],

  inject(context, carrier, setter) {
    const span = trace.getSpanContext(context)
    if (span === undefined || !isSpanContextValid(span)) return
    setter.set(
      carrier,
      parent,
      `00-${span.traceId}-${span.spanId}-0${(span.traceFlags & knownFlags).toString(16)}`,
    )
    const list = span.traceState?.serialize()
    if (list) setter.set(carrier, state, list)
  },

  extract(context, carrier, getter) {
    const given = getter.get(carrier, parent)
    if (typeof given !== 'string' || !isParent(given)) return context
    const [, traceId, spanId, flags] = given.split('-') as [string, string, string, string]
    const span = {
      traceId,
      spanId,
      traceFlags: Number.parseInt(flags, 16) & knownFlags,
      isRemote: true,
    }
    if (!isSpanContextValid(span)) return context
    const list = getter.get(carrier, state)
    const traceState =
      typeof list === 'string' && list.length <= mostCharacters
        ? { traceState: createTraceState(list) }
        : undefined
    return trace.setSpanContext(context, { ...span, ...traceState })
  },
}

// Version, trace, span, flags: `00-<32>-<16>-<2>`. A later version may continue after a hyphen.
function isParent(given: string): boolean {
  const version = given.slice(0, 2)
  if (version === 'ff' || given.length > mostCharacters) return false
  if (
    version === '00'
      ? given.length !== parentLength
      : given.length > parentLength && given[parentLength] !== '-'
  )
    return false
  for (let at = 0; at < parentLength; at++) {
    const isHyphen = at === 2 || at === 35 || at === 52
    if (isHyphen ? given[at] !== '-' : !isHex(given.charCodeAt(at))) return false
  }
  return true
}

// Lower case only. NaN, from beyond the end, is not a digit.
function isHex(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x66)
}
