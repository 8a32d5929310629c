/** Functions of the tests are as short as those of the product. And proof that the check can fail. */
import { describe, expect, it } from 'vitest'
import { longFunctions, mostLines, readTests } from './test-functions.js'

const filler = '\n'.repeat(mostLines)
const found = (code: string): string[] => longFunctions(new Map([['a.test.ts', code]]))

describe('functions of the tests', () => {
  it('have at most sixty lines each, suites aside', () => {
    const files = readTests()
    expect(files.size).toBeGreaterThan(500)
    expect(longFunctions(files)).toEqual([])
  }, 60_000)

  it('are found where they are longer: a test, a suite of one test, a helper, a method', () => {
    expect(found(`\nit('a', () => {${filler}})`)).toEqual([`a.test.ts:2: ${mostLines + 1}`])
    expect(found(`describe('a', () => { it.each([1])('b', () => {}) ${filler}})`)).toEqual([`a.test.ts:1: ${mostLines + 1}`])
    expect(found(`function a() {${filler}}\nclass A { b() {${filler}} }`)).toEqual([
      `a.test.ts:1: ${mostLines + 1}`,
      `a.test.ts:${mostLines + 2}: ${mostLines + 1}`,
    ])
  })

  it('may be as long as that, and suites longer', () => {
    expect(found(`it('a', () => {${filler.slice(1)}})\n${filler}`)).toEqual([])
    expect(found(`describe('a', () => {\n it('b', () => {})\n test.skipIf(true)('c', () => {})${filler}})`)).toEqual([])
    expect(found(`describe('a', () => {\n it('b', () => {})\n it('c', () => {${filler}})})`)).toEqual([`a.test.ts:3: ${mostLines + 1}`])
  })
})
