/**
 * The installed package bundled by rollup and webpack, each as it comes, and run in a page.
 */
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../interop/brokers.js'
import { nodeBelow } from '../browser-code.js'
import { type Bundle, bundled, flawless } from '../bundled.js'
import { project, removeProjects, requireDist } from '../fixture.js'
import { withBrowser } from '../page.js'
import { wellDone } from '../round.js'
import { withTools } from './fetched.js'

let broker: Broker

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  return () => broker.stop()
})
afterAll(removeProjects)

// What is used of the bundlers: they are not dependencies, so that their declarations are not here.
interface Rollup {
  rollup(options: object): Promise<{ write(options: object): Promise<unknown>; close(): Promise<void> }>
}
interface Said {
  readonly message: string
}
type Finished = (error: Error | null, stats?: { toJson(options: object): { warnings?: Said[]; errors?: Said[] } }) => void
type Webpack = (options: object) => { run(finished: Finished): void; close(closed: () => void): void }

function withRollup(tool: NodeJS.Require): Bundle {
  const { rollup }: Rollup = tool('rollup')
  const { nodeResolve }: { nodeResolve(options: object): object } = tool('@rollup/plugin-node-resolve')
  return async (folder) => {
    const warnings: string[] = []
    const onLog = (level: string, { message }: Said) => void warnings.push(`${level}: ${message}`)
    const input = path.join(folder, 'page.js')
    const made = await rollup({ input, plugins: [nodeResolve({ browser: true })], onLog })
    await made.write({ dir: path.join(folder, 'site'), format: 'es' })
    await made.close()
    return warnings
  }
}

function withWebpack(tool: NodeJS.Require): Bundle {
  const webpack: Webpack = tool('webpack')
  return async (folder) => {
    const output = { path: path.join(folder, 'site'), filename: 'page.js' }
    const compiler = webpack({ mode: 'production', context: folder, entry: './page.js', output })
    const said = await new Promise<Said[]>((resolve, reject) => {
      compiler.run((error, stats) => {
        const { warnings = [], errors = [] } = stats?.toJson({ all: false, warnings: true, errors: true }) ?? {}
        if (error === null) resolve([...warnings, ...errors])
        else reject(error)
      })
    })
    await new Promise<void>((resolve) => compiler.close(resolve))
    return said.map(({ message }) => message)
  }
}

const bundlers = [
  ['rollup', withRollup],
  ['webpack', withWebpack],
] as const

describe('in a page', () => {
  withTools((tool) => {
    withBrowser((openPage) => {
      it.each(bundlers)('pains 13 and 15 bundled by %s: no warning, nothing of Node, and it talks at each QoS', async (_, make) => {
        expect(await bundled(make(tool), openPage, broker.urls.WebSocket ?? '')).toEqual(flawless(wellDone))
      })
    })

    it.each(bundlers)('would be found out by %s if it needed Node', async (_, make) => {
      const folder = await project({ 'page.js': "import { connect } from 'node:net'\nconnect(1)\n" })
      const warnings = await make(tool)(folder)
      // rollup leaves such an import in place without a word.
      const left = warnings.length > 0 ? [] : await nodeBelow(path.join(folder, 'site'))
      expect([...warnings, ...left].join()).toContain('node:')
    })

    it('would be found out by rollup if a module were missing', async () => {
      const folder = await project({ 'page.js': "import { lost } from 'lost'\nlost()\n" })
      expect(await withRollup(tool)(folder)).toEqual([expect.stringMatching(/^warn: .*lost/)])
    })
  })
})
