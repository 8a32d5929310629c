import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hasWildcard, isShared, matches, parseShare, TopicTrie, validateTopicFilter, validateTopicName } from '../../../src/wire/index.js'

/** filter, topic, whether they match: section 4.7 and its examples. */
const table: [string, string, boolean][] = [
  ['a', 'a', true],
  ['a', 'b', false],
  ['a', 'A', false],
  ['a', 'a/b', false],
  ['a/b', 'a', false],
  ['/a', 'a', false],
  ['a', '/a', false],
  ['a/', 'a', false],
  ['a', 'a/', false],
  ['a//b', 'a//b', true],
  ['a/+/b', 'a//b', true],
  ['#', 'a', true],
  ['#', 'a/b/c', true],
  ['#', '/', true],
  ['#', '', true],
  ['a/#', 'a', true],
  ['a/#', 'a/', true],
  ['a/#', 'a/b/c', true],
  ['a/#', 'ab', false],
  ['a/#', 'b/a', false],
  ['/#', '/', true],
  ['/#', '/a', true],
  ['/#', 'a', false],
  ['+', 'a', true],
  ['+', 'a/b', false],
  ['+', '/a', false],
  ['+/+', '/a', true],
  ['/+', '/a', true],
  ['+/+', 'a/b', true],
  ['+/+', 'a', false],
  ['a/+', 'a', false],
  ['a/+', 'a/', true],
  ['a/+', 'a/b', true],
  ['a/+', 'a/b/c', false],
  ['a/+/#', 'a', false],
  ['a/+/#', 'a/b', true],
  ['a/+/#', 'a/b/c/d', true],
  ['+/b/#', 'a/b', true],
  ['sport/tennis/player1/#', 'sport/tennis/player1', true],
  ['sport/tennis/player1/#', 'sport/tennis/player1/score/wimbledon', true],
  ['sport/tennis/player1/#', 'sport/tennis/player10', false],
  ['sport/tennis/+', 'sport/tennis/player1/ranking', false],
  // Leading wildcards and $ [MQTT-4.7.2-1].
  ['#', '$SYS/x', false],
  ['+/x', '$SYS/x', false],
  ['+', '$SYS', false],
  ['$SYS/#', '$SYS/x', true],
  ['$SYS/#', '$SYS', true],
  ['$SYS/+', '$SYS/x', true],
  ['a/#', 'a/$b', true],
  ['a/+', 'a/$b', true],
  ['$share/g/a/+', 'a/b', true],
  ['$share/g/#', 'a/b', true],
  ['$share/g/#', '$SYS/b', false],
  ['$share/g/$SYS/#', '$SYS/b', true],
  ['$share/g//a', '/a', true],
  ['$share/g/a', '$share/g/a', false],
  ['$shareX/g/a', '$shareX/g/a', true],
  ['größe/+', 'größe/π', true],
]

describe('matching', () => {
  it.each(table)('%s on %s: %s', (filter, topic, expected) => {
    expect(matches(filter, topic)).toBe(expected)
    const trie = new TopicTrie<string>()
    trie.add(filter, filter)
    expect(trie.matchAll(topic)).toEqual(expected ? [filter] : [])
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

describe('validity', () => {
  for (const text of ['a', '/', 'a/b', ' ', '$SYS/x', '\ufeff', '😀', 'x'.repeat(65_535)]) {
    it(`takes the topic name ${JSON.stringify(text.slice(0, 12))}`, () => {
      expect(validateTopicName(text)).toBeUndefined()
    })
  }

  for (const text of [
    '',
    '#',
    '+',
    'a/#',
    'a+',
    'a\0',
    '\ud800',
    'a\udc00',
    '\udc00\ud800',
    'x'.repeat(65_536),
    'ü'.repeat(32_768),
    '日'.repeat(21_846),
  ]) {
    it(`refuses the topic name ${JSON.stringify(text.slice(0, 12))} [MQTT-4.7.0-1] [MQTT-4.7.3-1]`, () => {
      expect(validateTopicName(text)).toBeTypeOf('string')
    })
  }

  for (const text of [
    '#',
    '+',
    '/',
    'a',
    'a/#',
    '+/+',
    '/+',
    '+/',
    '/#',
    'a//b',
    '+/a/#',
    '$share',
    '$shareX/#',
    '$share/g/a',
    '$share/g/#',
    '$share/g//',
    '$SYS/#',
  ]) {
    it(`takes the filter ${JSON.stringify(text.slice(0, 12))}`, () => {
      expect(validateTopicFilter(text)).toBeUndefined()
    })
  }

  for (const text of [
    '',
    '#/a',
    'a#',
    'a/#/b',
    '+a',
    'a+',
    'a/+b/c',
    '##',
    '++',
    '#/',
    'a\0',
    '\ud800',
    'x'.repeat(65_536),
    '$share/',
    '$share/g',
    '$share/g/',
    '$share//a',
    '$share/+/a',
    '$share/#/a',
    '$share/g+/a',
    '$share/g#/a',
    '$share/g/a#',
  ]) {
    it(`refuses the filter ${JSON.stringify(text.slice(0, 12))} [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.8.2-1] [MQTT-4.8.2-2]`, () => {
      expect(validateTopicFilter(text)).toBeTypeOf('string')
    })
  }

  it('takes shared subscriptions apart', () => {
    expect(parseShare('$share/g/a/+')).toEqual({ shareName: 'g', filter: 'a/+' })
    expect(parseShare('$share/g//')).toEqual({ shareName: 'g', filter: '/' })
    for (const filter of ['a', '$share', '$share/', '$share/g', '$share/g/', '$share//a', '$shareX/g/a']) expect(parseShare(filter)).toBeUndefined()
    expect([isShared('$share/g/a'), isShared('$share'), isShared('a')]).toEqual([true, false, false])
    expect([hasWildcard('a/+'), hasWildcard('#'), hasWildcard('a')]).toEqual([true, true, false])
  })
})

const level = fc.constantFrom('a', 'b', '', '$SYS', 'aa')
const topics = fc.array(level, { minLength: 1, maxLength: 5 }).map((levels) => levels.join('/') || '/')
const filters = fc
  .tuple(fc.array(fc.oneof(level, fc.constant('+')), { minLength: 0, maxLength: 4 }), fc.boolean(), fc.constantFrom('', '', '$share/g/', '$share/h/'))
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
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), filters, fc.nat(2)), { maxLength: 40 }),
        fc.array(topics, { minLength: 1, maxLength: 10 }),
        (steps, names) => {
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
            const expected = [...model.values()].filter(({ filter }) => naive(filter, topic)).map(({ value }) => value)
            expect(trie.matchAll(topic).sort()).toEqual(expected.sort())
            for (const { filter } of model.values()) expect(matches(filter, topic)).toBe(naive(filter, topic))
          }
        },
      ),
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
    trie.add('a', 'x')
    trie.add('a', 'y')
    trie.add('$share/g/a', 'x')
    trie.add('$share/h/a', 'x')
    expect(trie.size).toBe(4)
    expect(trie.remove('a', 'x')).toBe(true)
    expect(trie.remove('a', 'x')).toBe(false)
    expect(trie.remove('b', 'x')).toBe(false)
    expect(trie.remove('$share/i/a', 'x')).toBe(false)
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

  it('takes levels that are names of object members', () => {
    const trie = new TopicTrie<string>()
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(trie.matchAll(name)).toEqual([])
      trie.add(`${name}/#`, name)
      expect(trie.matchAll(name)).toEqual([name])
    }
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
