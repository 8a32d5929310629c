import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  hasWildcard,
  isShared,
  matches,
  parseShare,
  TopicTrie,
  validateTopicFilter,
} from '../../../src/wire/index.js'

/** By filter: topics that match, and topics that do not (section 4.7 and its examples; leading wildcards and $ [MQTT-4.7.2-1]). */
const table: [filter: string, matching: string[], others: string[]][] = [
  ['a', ['a'], ['b', 'A', 'a/b', '/a', 'a/']],
  ['a/b', [], ['a']],
  ['/a', [], ['a']],
  ['a/', [], ['a']],
  ['a//b', ['a//b'], []],
  ['a/+/b', ['a//b'], []],
  ['#', ['a', 'a/b/c', '/', ''], ['$SYS/x']],
  ['a/#', ['a', 'a/', 'a/b/c', 'a/$b'], ['ab', 'b/a']],
  ['/#', ['/', '/a'], ['a']],
  ['+', ['a'], ['a/b', '/a', '$SYS']],
  ['+/+', ['/a', 'a/b'], ['a']],
  ['/+', ['/a'], []],
  ['a/+', ['a/', 'a/b', 'a/$b'], ['a', 'a/b/c']],
  ['a/+/#', ['a/b', 'a/b/c/d'], ['a']],
  ['+/b/#', ['a/b'], []],
  [
    'sport/tennis/player1/#',
    ['sport/tennis/player1', 'sport/tennis/player1/score/wimbledon'],
    ['sport/tennis/player10'],
  ],
  ['sport/tennis/+', [], ['sport/tennis/player1/ranking']],
  ['+/x', [], ['$SYS/x']],
  ['$SYS/#', ['$SYS/x', '$SYS'], []],
  ['$SYS/+', ['$SYS/x'], []],
  ['$share/g/a/+', ['a/b'], []],
  ['$share/g/#', ['a/b'], ['$SYS/b']],
  ['$share/g/$SYS/#', ['$SYS/b'], []],
  ['$share/g//a', ['/a'], []],
  ['$share/g/a', [], ['$share/g/a']],
  ['$shareX/g/a', ['$shareX/g/a'], []],
  ['größe/+', ['größe/π'], []],
]

describe('matching', () => {
  it.each(table)('%s on %j, not on %j', (filter, matching, others) => {
    const trie = new TopicTrie<string>()
    trie.add(filter, filter)
    for (const topic of [...matching, ...others]) {
      const expected = matching.includes(topic)
      expect([matches(filter, topic), trie.matchAll(topic)], topic).toEqual([
        expected,
        expected ? [filter] : [],
      ])
    }
  })

  it('never takes a topic with wildcards for a filter', () => {
    const trie = new TopicTrie<string>()
    for (const filter of ['+', '#', 'a/+', 'a/#']) trie.add(filter, filter)
    expect(trie.matchAll('a/#').sort()).toEqual(['#', 'a/#', 'a/+'])
    expect(trie.matchAll('a/+').sort()).toEqual(['#', 'a/#', 'a/+'])
  })

  it('walks 65,000 levels without recursion', () => {
    const deep = Array.from({ length: 32_000 }, () => 'x').join('/')
    const slashes = '/'.repeat(65_000)
    const pluses = `${'+/'.repeat(32_500)}#`
    const trie = new TopicTrie<string>()
    for (const [name, filter] of Object.entries({ deep, slashes, pluses })) trie.add(filter, name)
    expect(trie.matchAll(deep)).toEqual(['deep'])
    expect(trie.matchAll(slashes).sort()).toEqual(['pluses', 'slashes'])
    expect(matches(pluses, slashes)).toBe(true)
    expect(matches(deep, slashes)).toBe(false)
    expect(validateTopicFilter(pluses)).toBeUndefined()
    for (const filter of [deep, slashes, pluses]) expect(trie.remove(filter)).toBe(true)
    expect(trie.size).toBe(0)
  })
})

describe('shares and wildcards', () => {
  it('takes shared subscriptions apart', () => {
    expect(parseShare('$share/g/a/+')).toEqual({ shareName: 'g', filter: 'a/+' })
    expect(parseShare('$share/g//')).toEqual({ shareName: 'g', filter: '/' })
    const others = ['a', '$share', '$share/', '$share/g', '$share/g/', '$share//a', '$shareX/g/a']
    for (const filter of others) expect(parseShare(filter)).toBeUndefined()
    expect([isShared('$share/g/a'), isShared('$share'), isShared('a')]).toEqual([
      true,
      false,
      false,
    ])
    expect([hasWildcard('a/+'), hasWildcard('#'), hasWildcard('a')]).toEqual([true, true, false])
  })
})

const level = fc.constantFrom('a', 'b', '', '$SYS', 'aa')
const topics = fc
  .array(level, { minLength: 1, maxLength: 5 })
  .map((levels) => levels.join('/') || '/')
const filters = fc
  .tuple(
    fc.array(fc.oneof(level, fc.constant('+')), { minLength: 0, maxLength: 4 }),
    fc.boolean(),
    fc.constantFrom('', '', '$share/g/', '$share/h/'),
  )
  .map(([levels, hash, share]) => share + ([...levels, ...(hash ? ['#'] : [])].join('/') || '/'))

/** Section 4.7 spelled out, level by level. */
function naive(filter: string, topic: string): boolean {
  const wanted = filter.replace(/^\$share\/[^/]*\//, '').split('/')
  const levels = topic.split('/')
  if ((wanted[0] === '#' || wanted[0] === '+') && topic.startsWith('$')) return false
  const open = wanted.at(-1) === '#'
  if (open) wanted.pop()
  if (open ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((name, index) => name === '+' || name === levels[index])
}

describe('TopicTrie', () => {
  it('agrees with a naive matcher through additions and removals', () => {
    const changes = fc.array(fc.tuple(fc.boolean(), filters, fc.nat(2)), { maxLength: 40 })
    fc.assert(
      fc.property(changes, fc.array(topics, { minLength: 1, maxLength: 10 }), (steps, names) => {
        const trie = new TopicTrie<number>()
        const model = new Map<string, { filter: string; value: number }>()
        for (const [added, filter, value] of steps) {
          const key = `${value} ${filter}`
          if (added) {
            expect(trie.add(filter, value)).toBe(!model.has(key))
            model.set(key, { filter, value })
          } else expect(trie.remove(filter, value)).toBe(model.delete(key))
        }
        expect(trie.size).toBe(model.size)
        for (const topic of names) {
          const expected = [...model.values()]
            .filter(({ filter }) => naive(filter, topic))
            .map(({ value }) => value)
          expect(trie.matchAll(topic).sort()).toEqual(expected.sort())
          for (const { filter } of model.values())
            expect(matches(filter, topic)).toBe(naive(filter, topic))
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('leaves nothing behind when all is removed', () => {
    fc.assert(
      fc.property(fc.array(filters, { maxLength: 30 }), (list) => {
        const trie = new TopicTrie<string>()
        const fresh = new TopicTrie<string>()
        for (const filter of list) trie.add(filter, filter)
        for (const filter of new Set(list)) expect(trie.remove(filter)).toBe(true)
        expect(trie.size).toBe(0)
        for (const filter of list) expect(trie.remove(filter, filter)).toBe(false)
        expect(rootOf(trie)).toEqual(rootOf(fresh))
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the others of a filter, and tells shared from plain', () => {
    const trie = new TopicTrie<string>()
    for (const [filter, value] of [['a', 'x'] as const, ['a', 'y'] as const])
      trie.add(filter, value)
    for (const filter of ['$share/g/a', '$share/h/a']) trie.add(filter, 'x')
    expect(trie.size).toBe(4)
    expect(['a', 'a', 'b', '$share/i/a'].map((filter) => trie.remove(filter, 'x'))).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(trie.matchAll('a').sort()).toEqual(['x', 'x', 'y'])
    expect(trie.remove('$share/g/a')).toBe(true)
    expect(trie.matchAll('a').sort()).toEqual(['x', 'y'])
    expect(trie.remove('$share/h/a')).toBe(true)
    expect(trie.remove('a')).toBe(true)
    expect(trie.size).toBe(0)
  })

  it('holds undefined as a value', () => {
    const trie = new TopicTrie<string | undefined>()
    trie.add('a', 'x')
    trie.add('a', undefined)
    expect(trie.remove('a', undefined)).toBe(true)
    expect(trie.matchAll('a')).toEqual(['x'])
  })

  it('lets a visitor remove what it sees', () => {
    const trie = new TopicTrie<string>()
    for (const value of ['1', '2', '3']) trie.add('a/#', value)
    const seen: string[] = []
    trie.match('a/b', (value) => {
      seen.push(value)
      trie.remove('a/#', value)
    })
    expect(seen).toEqual(['1', '2', '3'])
    expect(trie.size).toBe(0)
  })
})

/** The tree as plain data; its fields are private, its size in memory is what matters here. */
function rootOf<T>(trie: TopicTrie<T>): unknown {
  const branches: unknown[] = []
  const get = Map.prototype.get
  // Every node that exists is reached by a look-up of its level; an empty tree makes none.
  Map.prototype.get = function (this: Map<unknown, unknown>, key: unknown) {
    branches.push(key)
    return get.call(this, key)
  }
  try {
    trie.match('a/b//a', () => {})
  } finally {
    Map.prototype.get = get
  }
  return branches
}
