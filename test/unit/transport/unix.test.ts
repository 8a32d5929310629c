import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dialUnix, listenUnix, pathOf } from '../../../src/transport/unix.js'
import { transportContract } from './contract.js'
import { dialledPair, failure, never, target } from './targets.js'

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'mqwire-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

transportContract({
  name: 'unix',
  pair: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mqwire-'))
    const pair = await dialledPair(
      (accept) => listenUnix({ path: join(folder, 'a socket') }, accept),
      dialUnix,
    )
    const cleanup = async () => {
      await pair.cleanup()
      await rm(folder, { recursive: true })
    }
    return { ...pair, cleanup }
  },
})

describe('unix', () => {
  it('takes both URL forms, with percent escapes', () => {
    const paths = ['unix:///run/mqtt.sock', 'unix:/run/mqtt.sock', 'unix:///run/a%20b.sock'].map(
      (url) => pathOf(new URL(url)),
    )
    expect(paths).toEqual(['/run/mqtt.sock', '/run/mqtt.sock', '/run/a b.sock'])
  })

  it('rejects with ENOENT where there is no socket, and with the reason when aborted', async () => {
    await inFolder(async (folder) => {
      const nowhere = target(`unix://${folder}/none`)
      expect((await failure(dialUnix(nowhere, { signal: never }))).code).toBe('ENOENT')
      const reason = new Error('changed my mind')
      await expect(dialUnix(nowhere, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    })
  })

  it('never takes over a path that is in use', async () => {
    await inFolder(async (folder) => {
      const path = join(folder, 's')
      const listener = await listenUnix({ path }, () => {})
      expect((await failure(listenUnix({ path }, () => {}))).code).toBe('EADDRINUSE')
      await listener.close()
    })
  })
})
