/** The plan of the house: no circles of imports, types counted, and no two classes of one name. And proof that each check can fail. */
import { describe, expect, it } from 'vitest'
import { circles, mutualRooms, repeatedClasses } from './house.js'
import { readSources } from './source.js'

const sources = readSources()
const tree = (...files: [file: string, code: string][]): Map<string, string> => new Map(files)

describe('the rooms of src', () => {
  it('have no circle of imports, types counted', () => expect(circles(sources)).toEqual([]))

  it('do not import each other', () => expect(mutualRooms(sources)).toEqual([]))

  it('have no class of the same name twice, but for what is published under one name for two platforms', () => {
    const twins = [
      'Client: client/browser.ts, client/node.ts',
      'MemoryBroker: testing/broker/broker.ts, testing/node.ts',
    ]
    expect(repeatedClasses(sources)).toEqual(twins)
  })
})

describe('the checks of the plan', () => {
  it('find a circle of any length, types counted, and one of the real house', () => {
    const ring = tree(
      ['client/a/a.ts', "import { b } from '../b/b.js'"],
      ['client/b/b.ts', "import type { A } from '../a/a.js'"],
      ['client/c/c.ts', "import { a } from '../a/a.js'"],
    )
    expect(circles(ring)).toEqual([['client/a/a.ts', 'client/b/b.ts']])
    expect(circles(tree(['client/a.ts', "export * from './a.js'"]))).toEqual([['client/a.ts']])
    expect(
      circles(tree(['client/a.ts', "import { b } from './b.js'"], ['client/b.ts', ''])),
    ).toEqual([])
    const file = 'testing/broker/common/clock.ts'
    const planted = new Map([
      ...sources,
      [file, `import type { Peer } from '../connection/peer.js'\n${sources.get(file)}`],
    ])
    expect(circles(planted)[0]).toContain(file)
    expect(mutualRooms(planted)).toEqual(['testing/broker/common testing/broker/connection'])
  })

  it('find rooms that import each other, though no file does', () => {
    const pair = tree(
      ['client/a/o.ts', "import type { Two } from '../b/t.js'"],
      ['client/a/p.ts', ''],
      ['client/b/t.ts', ''],
      ['client/b/m.ts', "import { other } from '../a/p.js'"],
    )
    expect(circles(pair)).toEqual([])
    expect(mutualRooms(pair)).toEqual(['client/a client/b'])
  })

  it('find a class whose name another one bears, also where it is not exported', () => {
    const twice = tree(
      ['client/a.ts', 'class A {}\nexport class B {}'],
      ['testing/b.ts', 'export abstract class A extends C {}'],
      ['c.ts', 'class C {}'],
    )
    expect(repeatedClasses(twice)).toEqual(['A: client/a.ts, testing/b.ts'])
    const planted = new Map([...sources, ['testing/p.ts', 'export class Session {}']])
    expect(repeatedClasses(planted)).toContain('Session: client/session/session.ts, testing/p.ts')
  })
})
