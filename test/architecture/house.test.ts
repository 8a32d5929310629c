/** The plan of the house: no circles, narrow ports, files and classes that one can survey. And proof that each check can fail. */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { circles, classes, lengths, mutualRooms, ports, repeatedClasses } from './house.js'
import { limits, measures, report, testingLimits } from './report.js'
import { readSources, root } from './source.js'
import { traced } from './trace.js'

const sources = readSources()
const tree = (...files: [file: string, code: string][]): Map<string, string> => new Map(files)

describe('the rooms of src', () => {
  it.each(measures(sources))('$name: within its limit', ({ value, what, limit }) => {
    expect(value, what).toBeLessThanOrEqual(limit)
  })

  it('have no class of the same name twice, but for what is published under one name for two platforms', () => {
    const twins = ['Client: client/browser.ts, client/node.ts', 'MemoryBroker: testing/broker/broker.ts, testing/node.ts']
    expect(repeatedClasses(sources)).toEqual(twins)
  })

  it('are all there, each that needs another with its ports', () => {
    const rooms = new Set([...sources.keys()].map((file) => path.posix.dirname(file)))
    expect(rooms.size).toBeGreaterThan(20)
    const withPorts = ['connection', 'delivery', 'dialling', 'durable', 'fleet', 'publishing', 'requesting', 'subscribing']
    const inTesting = ['broker/connection', 'broker/state']
    expect([...new Set(ports(sources).map(({ file }) => file))]).toEqual([
      ...withPorts.map((room) => `client/${room}/ports.ts`),
      ...inTesting.map((room) => `testing/${room}/ports.ts`),
    ])
  })

  it('npm run house prints every measure, the ports and the two walks', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [path.join(root, '.ci', 'house.mjs')])
    for (const name of ['circle of imports', 'pairs of rooms', 'largest port', 'largest class', 'longest file', 'PUBACK back', 'at QoS 2'])
      expect(stdout).toContain(name)
    expect(stdout).toMatch(/delivery\/ports\.ts Origin: filter, identifier/)
    // The walks were followed: into delivery, and to the session.
    expect(stdout).toMatch(/\n {3}\d {2}client\/connection > client\/delivery\n/)
    expect(stdout).toMatch(/\n {2}[ \d]\d {2}client\/publishing > client\/session\n/)
  }, 60_000)
})

describe('the checks of the plan', () => {
  it('find a circle, types counted', () => {
    const ring = tree(
      ['client/a/a.ts', "import { b } from '../b/b.js'"],
      ['client/b/b.ts', "import type { A } from '../a/a.js'"],
      ['client/c/c.ts', "import { a } from '../a/a.js'"],
    )
    expect(circles(ring)).toEqual([['client/a/a.ts', 'client/b/b.ts']])
    expect(circles(tree(['client/a.ts', "export * from './a.js'"]))).toEqual([['client/a.ts']])
    expect(circles(tree(['client/a.ts', "import { b } from './b.js'"], ['client/b.ts', '']))).toEqual([])
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

  it('count the members of a port with what it extends, and of no other interface', () => {
    const code = `interface One { readonly a: number; b(): void }\nexport interface Two extends One, Elsewhere { c(): void; d?: { e: number } }`
    expect(ports(tree(['client/a/ports.ts', code], ['client/a/a.ts', code])).map(({ name, members }) => [name, members])).toEqual([
      ['One', ['a', 'b']],
      ['Two', ['c', 'd', 'a', 'b']],
    ])
  })

  it('count the members of a class: fields, methods, accessors once', () => {
    const code = `export class A { #a = 1; static b = 2; declare c: number; get d() { return 1 } set d(x) {} constructor() {} async #e() {} [Symbol.iterator]() {} }`
    expect(classes(tree(['client/a.ts', code]))[0]?.members).toEqual(['#a', 'b', 'c', 'd', '#e', '[Symbol.iterator]'])
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

  it('find a circle in testing as well', () => {
    const file = 'testing/broker/common/clock.ts'
    const planted = new Map([...sources, [file, `import type { Peer } from '../connection/peer.js'\n${sources.get(file)}`]])
    const over = measures(planted).filter(({ value, limit }) => value > limit)
    expect(over.map(({ name }) => name)).toEqual(['circle', 'mutual'])
    expect(over[0]?.what).toContain(file)
  })

  it('put the longest file first', () => {
    expect(lengths(tree(['a.ts', 'a\n'], ['b.ts', 'a\nb\n']))).toEqual([
      ['b.ts', 2],
      ['a.ts', 1],
    ])
  })

  it('say what is over its limit', () => {
    const members = Array.from({ length: limits.port + 1 }, (_, index) => `m${index}(): void`).join('; ')
    const bad = tree(
      ['client/a/ports.ts', `import type { B } from '../b/b.js'\nexport interface Wide { ${members} }`],
      ['client/b/b.ts', `import type { Wide } from '../a/ports.js'\n${'\n'.repeat(limits.lines)}`],
      [
        'testing/d.ts',
        `class D { ${Array.from({ length: testingLimits.class + 1 }, (_, index) => `m${index} = 1`).join('; ')} }\n${'\n'.repeat(testingLimits.lines)}`,
      ],
      ['client/c.ts', `class C { ${Array.from({ length: limits.class + 1 }, (_, index) => `m${index} = 1`).join('; ')} }`],
    )
    const over = measures(bad).filter(({ value, limit }) => value > limit)
    expect(over.map(({ name }) => name)).toEqual(['circle', 'mutual', 'port', 'class', 'lines', 'testing class', 'testing lines'])
    const crossings = Array.from({ length: limits.inbound + 1 }, () => 'a > b')
    expect(report(root, crossings, []).over).toEqual(['inbound'])
    expect(report(root, [], []).over).toEqual([])
  })

  it('follow functions of every kind, and leave what they do as it is', () => {
    const code = `
      const log = []
      class A {
        get x() { return 1 }
        m(a) { return n(a) + this.x }
      }
      function n(a) { return [1, 2].map((i) => i * a).reduce((s, i) => s + i) }
      const object = () => ({ o: 1 })
      async function later() { await 0; return 5 }
      function* some() { yield 1 }
      return [new A().m(2), object().o, [...some()], later()]`
    const trail: string[] = []
    const hook = (place: string) => {
      trail.push(`+${place}`)
      return () => void trail.push('-')
    }
    Object.assign(globalThis, { traceTested: hook })
    const run = (text: string): unknown[] => new Function(text)() as unknown[]
    expect(run(traced(code, 'a.ts', 'traceTested', 'p')).slice(0, 3)).toEqual(run(code).slice(0, 3))
    // m, n, an arrow twice and one once, object; some and later, which are left at once.
    expect(trail.filter((step) => step === '+p')).toHaveLength(8)
    expect(trail.filter((step) => step === '-')).toHaveLength(8)
    expect(trail.slice(-4)).toEqual(['+p', '-', '+p', '-'])
  })
})
