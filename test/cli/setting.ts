/** A broker in memory for the packed command, and a folder for its files. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/node.js'

const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-cli-'))
afterAll(() => rm(folder, { recursive: true }))
export const fileOf = (name: string): string => path.join(folder, name)

export let broker: MemoryBroker
export let url: string[]

export async function serve(options: MemoryBrokerOptions = {}): Promise<void> {
  broker = new MemoryBroker(options)
  const { urls } = await broker.serve({ tcp: 0 })
  url = ['--url', urls[0] ?? '']
}

beforeEach(() => serve())
afterEach(() => broker.close())

/** Fulfils when a client has subscribed. */
export const subscribed = (filter: string): Promise<void> =>
  expect
    .poll(() =>
      [...broker.sessions.values()].some(({ subscriptions }) =>
        subscriptions.some((each) => each.filter === filter),
      ),
    )
    .toBe(true)
