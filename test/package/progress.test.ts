/** How far a long run is: lines on a stream that is no terminal, one line that is rewritten on one that is, and never on standard output. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

interface Stream {
  readonly isTTY: boolean
  readonly columns?: number
  write(text: string): void
}

interface Module {
  duration(milliseconds: number): string
  readonly Progress: new (
    name: string,
    unit: string,
    options: { readonly stream: Stream; readonly clock: () => number },
  ) => {
    readonly line: string | undefined
    at(
      done: number,
      total?: number,
      more?: { readonly left?: number; readonly note?: string },
    ): void
    end(): void
  }
}

const { Progress, duration } = (await import(
  new URL('../../bench/progress.js', import.meta.url).href
)) as Module

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function made(isTTY: boolean) {
  const written: string[] = []
  const stream = { isTTY, columns: 60, write: (text: string) => void written.push(text) }
  return {
    written,
    progress: new Progress('world', 'seeds', { stream, clock: () => Date.now() - start }),
  }
}

const start = Date.now()

beforeEach(() => void vi.setSystemTime(start))

it('is a line every 30 seconds, with the time left, where nobody watches', async () => {
  const { written, progress } = made(false)
  progress.at(0, 12_000)
  await vi.advanceTimersByTimeAsync(29_999)
  expect(written).toEqual([])
  progress.at(3000, 12_000)
  await vi.advanceTimersByTimeAsync(1)
  expect(written).toEqual(['world: 3,000 of 12,000 seeds, 30 s gone, about 2 min left\n'])
  progress.end()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(written).toHaveLength(1)
})

it('is one line that is rewritten, cut to the screen and cleared at the end, on a terminal', async () => {
  const { written, progress } = made(true)
  progress.at(10, 20, { note: 'a note that is far too long for a narrow screen' })
  await vi.advanceTimersByTimeAsync(500)
  expect(written).toHaveLength(2)
  for (const text of written) {
    expect(text.startsWith('\r\x1b[Kworld: 10 of 20 seeds')).toBe(true)
    expect(text.length).toBeLessThan(60 + 4)
    expect(text).not.toContain('\n')
  }
  progress.end()
  expect(written.at(-1)).toBe('\r\x1b[K')
})

it('tells no time left before anything is done, and the one that it is given', () => {
  const { progress } = made(false)
  expect(progress.line).toBeUndefined()
  progress.at(0, 5)
  expect(progress.line).toBe('world: 0 of 5 seeds, 1 s gone')
  progress.at(7, undefined, { note: 'wire' })
  expect(progress.line).toBe('world: 7 seeds, wire, 1 s gone')
  progress.at(7, undefined, { left: 600_000 })
  expect(progress.line).toBe('world: 7 seeds, 1 s gone, about 10 min left')
  progress.end()
})

it('names times as people do', () => {
  expect([400, 89_000, 120_000, 5_340_000, 9_000_000].map(duration)).toEqual([
    '1 s',
    '89 s',
    '2 min',
    '89 min',
    '2.5 h',
  ])
})
