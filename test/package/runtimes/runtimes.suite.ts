/**
 * The installed package in every supported Node, the oldest one included, and in Deno and Bun: a round over TCP and one over WebSocket; and what
 * `console.log` shows in Deno and Bun of everything that a program gets into its hands.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../real/brokers.js'
import { project, removeProjects, requireDist, root, run, writeFiles } from '../fixture.js'
import { programs, wellDone } from '../page.js'
import { printed, type Servers, startServers } from '../transcript/in-node.js'
import { expectRules } from '../transcript/kept.js'
import { flags, leftOut, type Runtime, runtimes, storesIn } from './fetched.js'

let broker: Broker
let servers: Servers
let folder = ''

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  servers = await startServers()
  folder = await project(programs)
  return async () => {
    await broker.stop()
    await servers.stop()
  }
})
afterAll(removeProjects)

const withHeaders = `
import { connect } from 'mqwire'
await connect({ url: process.argv[2], headers: { 'x-tenant': '7' } }, { reconnect: false }).catch((error) => console.log(error.code))
`

const withoutPeer = `
import { levelStore } from 'mqwire/store/level'
await levelStore('store').catch(({ code, message }) => console.log(code, message))
`

/** Node 22.12 warns that `require` of an ES module is experimental; 22.13 does not. */
const warns = (version: string): readonly string[] =>
  version === '22.12.0' ? ['--disable-warning=ExperimentalWarning'] : []

/** Runs a program with what the runtime keeps for itself in the project, so that nothing of it stays. */
function start({ kind, version, executable = '' }: Runtime, parameters: readonly string[]) {
  return run(executable, [...flags[kind], ...warns(version), ...parameters], folder, 30_000, {
    ...process.env,
    ...storesIn(folder),
  })
}

describe.each(runtimes)('$name', (runtime) => {
  if (runtime.executable === undefined) {
    leftOut(runtime.name, runtime.reason)
    return
  }

  it('is the version that it is called by', async () => {
    const { output } = await run(runtime.executable ?? '', ['--version'])
    expect(output.split('\n')[0]).toContain(runtime.version)
  })

  const cases = Object.keys(programs).flatMap((program) => [
    [program, 'TCP'] as const,
    [program, 'WebSocket'] as const,
  ])
  it.each(cases)('runs %s over %s at each QoS, silently, and ends', async (program, transport) => {
    expect(await start(runtime, [program, broker.urls[transport] ?? ''])).toEqual({
      code: 0,
      output: wellDone,
    })
  })

  it('says what to install where a peer is missing', async () => {
    await writeFiles(folder, { 'peer.mjs': withoutPeer })
    const output = 'ERR_STORE levelStore needs the package classic-level: npm install classic-level'
    expect(await start(runtime, ['peer.mjs'])).toEqual({ code: 0, output })
  })

  if (runtime.kind !== 'node')
    it('prints each object by the rules', async () => {
      const empty = await project({})
      const file = path.join(root, 'test', 'package', 'transcript', 'programs', 'objects.js')
      const { executable = '', kind } = runtime
      const runner = { executable, flags: flags[kind], env: storesIn(empty) }
      const text = await printed(empty, servers, 'objects.js', await readFile(file, 'utf8'), runner)
      expectRules([['objects', text]])
      expect(text.split('\n').filter((line) => line.startsWith('-- '))).not.toEqual([])
    })

  // Its WebSocket is the platform's, which takes no headers.
  if (runtime.kind !== 'bun') return
  it('refuses headers for a WebSocket', async () => {
    await writeFiles(folder, { 'headers.mjs': withHeaders })
    expect(await start(runtime, ['headers.mjs', broker.urls.WebSocket ?? ''])).toEqual({
      code: 0,
      output: 'ERR_UNSUPPORTED_OPTION',
    })
  })
})
