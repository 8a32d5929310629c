/**
 * User Properties as a carrier for propagators.
 *
 * A caller's objects are never changed. Values from a peer are limited in length, and ignored when
 * given twice.
 */
import type { TextMapGetter, TextMapSetter } from '@opentelemetry/api'

/** Pairs of name and value. */
export type Pairs = readonly (readonly [name: string, value: string])[]

/** Most characters of a value: what the recommendation for baggage allows. */
const mostCharacters = 8192

/** Reads pairs. */
export const getter: TextMapGetter<Pairs> = {
  keys: (pairs) => pairs.map(([name]) => name),
  get(pairs, wanted) {
    const [found, ...others] = pairs.filter(([name]) => name === wanted)
    return found === undefined || others.length > 0 || found[1].length > mostCharacters
      ? undefined
      : found[1]
  },
}

/** Writes pairs. */
export const setter: TextMapSetter<[string, string][]> = {
  set(pairs, name, value) {
    if (value.length <= mostCharacters) pairs.push([name, value])
  },
}
