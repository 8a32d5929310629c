/** The build shortens names of properties: none of them may be one that anybody outside can use. */
import { expect, it } from 'vitest'

const script = '../../.ci/internal-names.mjs'

it('are names that no type of an entry, no platform and no string knows (if not: node .ci/internal-names.mjs --write)', {
  timeout: 60_000,
}, async () => {
  const { findInternalNames, internalNames } = (await import(script)) as { findInternalNames: () => string[]; internalNames: readonly string[] }
  const found = new Set(findInternalNames())
  expect(internalNames.length).toBeGreaterThan(100)
  expect(internalNames.filter((name) => !found.has(name))).toEqual([])
  // The search knows what is public: options, events, fields of messages, methods, what `Pick` takes over.
  for (const name of ['keepAlive', 'connecterror', 'payload', 'unsubscribe', 'packetId', 'onclose', 'then', 'identifier'])
    expect(found).not.toContain(name)
  // And what is not: what an entry shows as a type alone, words that the language has only as parameters, other fields of what `Pick` was given.
  for (const name of ['registry', 'settled', 'publishQueue', 'restoring']) expect(found).toContain(name)
})
