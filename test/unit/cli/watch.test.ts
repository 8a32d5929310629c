/** The tree of `mqwire watch`, and what its screen shows. */
import picocolors from 'picocolors'
import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { draw, treeRows, type View } from '../../../src/cli/watch/screen.js'
import { differences, sparkline, Topics } from '../../../src/cli/watch/topics.js'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const add = (topics: Topics, topic: string, text: string, time = 0): void =>
  topics.add(topic, { bytes: bytes(text), size: text.length, retain: false, time })
const view = (more: Partial<View> = {}): View => ({
  selected: '',
  top: 0,
  search: undefined,
  frozen: false,
  ...more,
})
const lines = (topics: Topics, shown: View, width = 80, height = 24): string[] =>
  draw(topics, shown, {
    width,
    height,
    now: 1000,
    colours: picocolors.createColors(false),
    status: '',
  })

describe('the tree', () => {
  it('counts a message at each level, and keeps the latest two values', () => {
    const topics = new Topics()
    add(topics, 'a/b', '1')
    add(topics, 'a/b', '2')
    add(topics, 'a/c', '3')
    const a = topics.root.children.get('a')
    const b = a?.children.get('b')
    expect([topics.root.count, a?.count, b?.count]).toEqual([3, 3, 2])
    expect([b?.path, b?.before?.bytes, b?.last?.bytes]).toEqual(['a/b', bytes('1'), bytes('2')])
    expect(topics.search('/c', 10).map(({ path }) => path)).toEqual(['a/c'])
  })

  it('has a bound: further topics are only counted', () => {
    const topics = new Topics()
    for (let index = 0; index < 100_100; index++) add(topics, `t${index}`, 'x'.repeat(1))
    add(topics, 't1', 'y'.repeat(5000))
    expect([topics.size, topics.beyond, topics.root.count]).toEqual([100_000, 100, 100_101])
    expect(topics.root.children.get('t1')?.last?.bytes).toHaveLength(512)
  })

  it('averages the rate', () => {
    const topics = new Topics()
    for (let index = 0; index < 100; index++) add(topics, 'a', '')
    topics.root.rateAt(1000)
    for (let index = 0; index < 50; index++) add(topics, 'a', '')
    for (let time = 2000; time <= 20_000; time += 1000) {
      for (let index = 0; index < 50; index++) add(topics, 'a', '')
      topics.root.rateAt(time)
    }
    expect(topics.root.rateAt(20_000)).toBeCloseTo(50, 0)
  })
})

describe('what is shown', () => {
  it.each([
    [80, 24],
    [40, 12],
    [200, 60],
  ])('fits %i × %i, with wide and unsafe characters', (width, height) => {
    const topics = new Topics()
    add(topics, `plant/${'long'.repeat(40)}/end`, 'x'.repeat(400))
    add(topics, '工場/温度', '{"値":"\u001b[31m高い\\n"}')
    for (let index = 0; index < 30; index++) add(topics, 'n', String(index))
    for (const topic of topics.root.children.values()) topic.isOpen = true
    const shown = lines(topics, view({ selected: 'n' }), width, height)
    expect(shown.length).toBeLessThanOrEqual(height)
    for (const line of shown) expect(stringWidth(line)).toBeLessThanOrEqual(width)
    expect(shown.join('')).not.toContain('\u001b[31m高い')
  })

  it('shows the difference to the message before, and the end of a topic', () => {
    const topics = new Topics()
    add(topics, 'a', '{"t":1,"u":2}')
    add(topics, 'a', '{"t":3,"u":2}')
    expect(lines(topics, view({ selected: 'a' })).join('\n')).toContain('t: 1 → 3')
    expect(differences('{"a":{"b":1},"c":0}', '{"a":{"b":2}}')).toEqual([
      'a.b: 1 → 2',
      'c: 0 → (none)',
    ])
    expect(differences('x', '1')).toBeUndefined()
    add(topics, `${'x'.repeat(60)}-tail`, '')
    expect(lines(topics, view()).join('\n')).toContain('-tail')
    expect(sparkline([0, 7, 3.5])).toBe('▁█▅')
    expect(treeRows(24)).toBe(15)
  })
})
