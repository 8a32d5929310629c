/** What `console.log` shows in Deno and Bun of everything that a program gets into its hands: by the rules of `test/package/transcript`. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { project, removeProjects, requireDist, root } from '../fixture.js'
import { printed, type Servers, startServers } from '../transcript/in-node.js'
import { expectRules } from '../transcript/kept.js'
import { flags, leftOut, runtimes, storesIn } from './fetched.js'

let servers: Servers

beforeAll(async () => {
  await requireDist()
  servers = await startServers()
  return () => servers.stop()
})
afterAll(removeProjects)

describe.each(runtimes.filter(({ kind }) => kind !== 'node'))(
  '$name',
  ({ name, kind, executable, reason }) => {
    if (executable === undefined) {
      leftOut(name, reason)
      return
    }

    it('prints each object by the rules', async () => {
      const folder = await project({})
      const code = await readFile(
        path.join(root, 'test', 'package', 'transcript', 'programs', 'objects.js'),
        'utf8',
      )
      const runner = { executable, flags: flags[kind], env: storesIn(folder) }
      const text = await printed(folder, servers, 'objects.js', code, runner)
      expectRules([['objects', text]])
      expect(text.split('\n').filter((line) => line.startsWith('-- '))).not.toEqual([])
    })
  },
)
