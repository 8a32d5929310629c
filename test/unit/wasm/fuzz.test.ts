/**
 * Any bytes, delivered in any way, give the same frames, fields and errors through both scanners.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { always, differs, instantiate, tellFramer, tellScanner } from './scanner.js'
import { streams } from './streams.js'

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
        expect(
          differs(tellFramer(setting, deliveries), tellScanner(memory, setting, deliveries, worth)),
        ).toBeUndefined()
      }),
      {
        numRuns: 1_000_000,
        interruptAfterTimeLimit: (seconds * 1000) / 2,
        markInterruptAsFailure: false,
      },
    )
    expect(memory.broken).toBe(false)
    expect(count, 'streams').toBeGreaterThan(30)
  })
})
