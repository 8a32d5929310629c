/**
 * The installed package bundled by rollup, webpack, rspack and Parcel, each as it comes, and run in a page.
 */
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../real/brokers.js'
import { node, removeProjects, requireDist } from '../fixture.js'
import { type Bundle, bundled, flawless, wellDone, withBrowser } from '../page.js'
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
  rollup(
    options: object,
  ): Promise<{ write(options: object): Promise<unknown>; close(): Promise<void> }>
}
interface Said {
  readonly message: string
}
type Finished = (
  error: Error | null,
  stats?: { toJson(options: object): { warnings?: Said[]; errors?: Said[] } },
) => void
type Webpack = (options: object) => {
  run(finished: Finished): void
  close(closed: () => void): void
}

function withRollup(tool: NodeJS.Require): Bundle {
  const { rollup }: Rollup = tool('rollup')
  const { nodeResolve }: { nodeResolve(options: object): object } = tool(
    '@rollup/plugin-node-resolve',
  )
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

function webpacked(load: () => Promise<Webpack>): Bundle {
  return async (folder) => {
    const make = await load()
    const output = { path: path.join(folder, 'site'), filename: 'page.js' }
    const compiler = make({ mode: 'production', context: folder, entry: './page.js', output })
    const said = await new Promise<Said[]>((resolve, reject) => {
      compiler.run((error, stats) => {
        const { warnings = [], errors = [] } =
          stats?.toJson({ all: false, warnings: true, errors: true }) ?? {}
        if (error === null) resolve([...warnings, ...errors])
        else reject(error)
      })
    })
    await new Promise<void>((resolve) => compiler.close(resolve))
    return said.map(({ message }) => message)
  }
}

const withWebpack = (tool: NodeJS.Require): Bundle => webpacked(async () => tool('webpack'))

function withRspack(tool: NodeJS.Require): Bundle {
  return webpacked(async () => {
    const { rspack }: { rspack: Webpack } = await import(
      pathToFileURL(tool.resolve('@rspack/core')).href
    )
    return rspack
  })
}

/** Parcel starts from the page, which it writes anew. Left to itself it would install what stands for modules of Node; some it leaves out in silence. */
function withParcel(tool: NodeJS.Require): Bundle {
  const command = path.join(path.dirname(tool.resolve('parcel/package.json')), 'lib', 'bin.js')
  const flags = [
    '--dist-dir',
    'site',
    '--no-cache',
    '--no-source-maps',
    '--no-autoinstall',
    '--log-level',
    'warn',
  ]
  return async (folder) => {
    await rm(path.join(folder, 'site'), { recursive: true, force: true })
    const { output } = await node([command, 'build', 'index.html', ...flags], folder)
    return output === '' ? [] : [output]
  }
}

const bundlers = [
  ['rollup', withRollup],
  ['webpack', withWebpack],
  ['rspack', withRspack],
  ['Parcel', withParcel],
] as const

describe('in a page', () => {
  withTools((tool) => {
    withBrowser((openPage) => {
      it.each(bundlers)(
        'bundled by %s: no warning, nothing of Node, and it talks at each QoS',
        async (_, make) => {
          expect(await bundled(make(tool), openPage, broker.urls.WebSocket ?? '')).toEqual(
            flawless(wellDone),
          )
        },
      )
    })
  })
})
