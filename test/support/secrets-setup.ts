/** Runs before every test file: listens to the console and to process warnings, and fails the test during which a secret of the tests is printed. */
import { format } from 'node:util'
import { afterAll, afterEach, expect, vi } from 'vitest'

const canary = /canary|tweety-5up3r/i
const printers = ['debug', 'dir', 'error', 'info', 'log', 'trace', 'warn'] as const

/** Where files share a process (`--no-isolate`) this runs once for each: they share what is overheard as well, and nothing is listened to twice. */
const shared = globalThis as { overheardSecrets?: string[] }
const isFirst = shared.overheardSecrets === undefined
shared.overheardSecrets ??= []
const overheard = shared.overheardSecrets

/** True when there is a secret in it, which is then known and need not be printed. */
function secret(given: readonly unknown[]): boolean {
  const text = format(...given)
  if (!canary.test(text)) return false
  overheard.push(text.slice(0, 200))
  return true
}

function listen(): void {
  for (const name of printers) {
    const print = console[name].bind(console)
    console[name] = (...given: unknown[]) => {
      if (!secret(given)) print(...given)
    }
  }
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = ((warning: string | Error, ...rest: []) => {
    if (!secret([warning, ...rest])) emitWarning(warning, ...rest)
  }) as typeof process.emitWarning
}

if (isFirst) listen()

const taken = (): string[] => overheard.splice(0)

// For the one test that shows that this works: a module that it imports would be another copy.
Object.assign(globalThis, { takeOverheardSecrets: taken })

// Bytes of one class that are the same are equal at once: to look at each of them as at a property costs a microsecond. All else is as it was.
expect.addEqualityTesters([
  (one: unknown, other: unknown): true | undefined => {
    if (!(one instanceof Uint8Array && other instanceof Uint8Array)) return undefined
    return one.constructor === other.constructor && Buffer.compare(one, other) === 0
      ? true
      : undefined
  },
])

afterEach(() => {
  expect(taken(), 'secrets on the console, or in process warnings').toEqual([])
})

// What a file leaves behind would be the failure of another one where files share a process.
const { MessageChannel: channels, queueMicrotask: microtasks, setTimeout: timers } = globalThis
afterAll(() => {
  const isFake = vi.isFakeTimers()
  // The next file would wait for ever.
  vi.useRealTimers()
  expect(isFake, 'the clock is real').toBe(false)
  expect([globalThis.MessageChannel, globalThis.queueMicrotask, globalThis.setTimeout]).toEqual([
    channels,
    microtasks,
    timers,
  ])
})
