/**
 * Any bytes, delivered in any way, give the same frames, fields and errors through both scanners; and a defect in the binary one is found.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compile, readSource } from './compiler.js'
import { defects } from './defects.js'
import { always, differs, instantiate, tellFramer, tellScanner } from './scanner.js'
import { streams } from './streams.js'

const seed = Number(process.env['MQWIRE_FUZZ_SEED'] ?? Date.now() | 0)
const seconds = Number(process.env['MQWIRE_FUZZ_SECONDS'] ?? 4)

describe('both scanners', () => {
  it.each([
    ['always', always],
    ['where it is worth it', undefined],
  ])('tell the same of any stream, the one in WebAssembly %s', { timeout: 60_000 }, (_, worth) => {
    const memory = instantiate()
    let count = 0
    fc.assert(
      fc.property(streams, ({ setting, deliveries }) => {
        count += 1
        expect(differs(tellFramer(setting, deliveries), tellScanner(memory, setting, deliveries, worth))).toBeUndefined()
      }),
      { seed, numRuns: 1_000_000, interruptAfterTimeLimit: (seconds * 1000) / 2, markInterruptAsFailure: false },
    )
    expect(memory.broken).toBe(false)
    expect(count, `streams, seed ${seed}`).toBeGreaterThan(30)
  })
})

describe('a defect in the scanner is found:', () => {
  it.each(defects.map((defect) => [defect.name, defect] as const))('%s', { timeout: 120_000 }, async (_, { find, replace }) => {
    const source = readSource()
    expect(source.split(find)).toHaveLength(2)
    const memory = instantiate(
      await compile(
        source.replace(find, () => replace),
        true,
      ),
    )
    const found = fc.check(
      fc.property(streams, ({ setting, deliveries }) => {
        return differs(tellFramer(setting, deliveries), tellScanner(memory, setting, deliveries, always)) === undefined
      }),
      // The same streams each time: what finds a defect once finds it again.
      { seed: 7, numRuns: 20_000, endOnFailure: true },
    )
    expect(found.counterexample).not.toBeNull()
  })
})
