/** Folders for stores on the disk, and what tests store there. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect } from 'vitest'
import type { Store, StoreOperation } from '../../../src/store/index.js'

const root = mkdtempSync(path.join(tmpdir(), 'mqwire-store-'))
let count = 0

/** A path where nothing is yet. */
export function newPlace(): string {
  count += 1
  return path.join(root, `store-${count}`)
}

export function folderWith(file: string, content: string | Uint8Array = ''): string {
  const place = newPlace()
  mkdirSync(place, { mode: 0o700 })
  writeFileSync(path.join(place, file), content)
  return place
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
export const textOf = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes)
export const numbersFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => first + at)

export const put = (key: string, value: string | Uint8Array = '1'): StoreOperation => ({
  ...{ type: 'put', key, value: typeof value === 'string' ? bytesOf(value) : value },
})
export const del = (key: string): StoreOperation => ({ type: 'delete', key })

/** The nth of some batches: two keys that only change together, one that comes and one that goes. */
export const batchOf = (n: number): StoreOperation[] => [
  ...[put('left', `${n}`), put(`q/${n}`, 'v'.repeat(n)), del(`q/${n - 2}`), put('right', `${n}`)],
]

/** What a store has after so many of them. */
export function stateAfter(count: number): string {
  if (count === 0) return ''
  const queued = [count - 1, count].filter((n) => n > 0).map((n) => `q/${n}=${'v'.repeat(n)}`)
  return [`left=${count}`, ...queued, `right=${count}`].join(' ')
}

/** All that a store has, values by their first 20 bytes. */
export async function stateOf(store: Store): Promise<string> {
  const found: string[] = []
  for await (const [key, value] of store.entries())
    found.push(`${key}=${textOf(value.subarray(0, 20))}`)
  return found.join(' ')
}

export const failureOf = (code: unknown) =>
  expect.objectContaining({ code: 'ERR_STORE', cause: expect.objectContaining({ code }) })

export const failureWith = (message: string) =>
  expect.objectContaining({ code: 'ERR_STORE', message: expect.stringContaining(message) })
