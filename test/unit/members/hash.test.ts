import { expect, it } from 'vitest'
import { fnv1a, weight } from '../../../src/members/router.js'

it.each([
  ['', 0x811c9dc5],
  ['a', 0xe40c292c],
  ['b', 0xe70c2de5],
  ['foobar', 0xbf9cf968],
])('fnv1a of %j is that of the published table', (text, hash) => expect(fnv1a(text)).toBe(hash))

// Programs of different versions must agree on the member of a topic.
it.each([
  ['a', 't', 1688881513],
  ['eu', '', 1060333821],
])('the weight of member %j for topic %j never changes', (name, topic, value) =>
  expect(weight(fnv1a(name), fnv1a(topic))).toBe(value),
)

const preferred = (names: readonly string[], topic: string): string =>
  names.reduce((best, name) =>
    weight(fnv1a(name), fnv1a(topic)) > weight(fnv1a(best), fnv1a(topic)) ? name : best,
  )
const topics = Array.from(
  { length: 20_000 },
  (_, index) => `site/${index % 37}/device-${index}/telemetry`,
)

it.each([
  [['a', 'b', 'c']],
  [['pub-1', 'pub-2', 'pub-3', 'pub-4']],
  [['eu', 'us', 'asia', 'x1', 'x2']],
])('spreads topics over %j evenly, within 5 %%', (names) => {
  const counts = new Map(names.map((name) => [name, 0]))
  for (const topic of topics)
    counts.set(preferred(names, topic), (counts.get(preferred(names, topic)) ?? 0) + 1)
  const fair = topics.length / names.length
  for (const count of counts.values()) expect(Math.abs(count - fair) / fair).toBeLessThan(0.05)
})

it('moves the topics of a member that is lost, and no other', () => {
  const names = ['a', 'b', 'c', 'd']
  const left = ['a', 'b', 'd']
  for (const topic of topics)
    if (preferred(names, topic) !== 'c')
      expect(preferred(left, topic)).toBe(preferred(names, topic))
})
