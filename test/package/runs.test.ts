/** The installed package at work, in this Node and in pages. `npm run lab -- runtimes` does the same with other bundlers and runtimes. */
import { build as esbuild } from 'esbuild'
import { createLogger, build as vite } from 'vite'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Broker, startAedes } from '../real/brokers.js'
import { node, project, removeProjects, requireDist } from './fixture.js'
import {
  type Bundle,
  bundled,
  flawless,
  pageWith,
  programs,
  wellDone,
  withBrowser,
} from './page.js'

let broker: Broker
let urls: [tcp: string, webSocket: string]

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  urls = [broker.urls.TCP ?? '', broker.urls.WebSocket ?? '']
  return () => broker.stop()
})
afterAll(removeProjects)

describe('in Node', () => {
  it.each(Object.keys(programs))(
    '%s talks over TCP and WebSocket at each QoS, and the process ends',
    async (name) => {
      const folder = await project(programs)
      const flags = ['--unhandled-rejections=strict', '--disable-warning=ExperimentalWarning']
      expect(await node([...flags, name, ...urls], folder, 15_000)).toEqual({
        code: 0,
        output: `${wellDone}\n${wellDone}`,
      })
    },
  )
})

const withEsbuild: Bundle = async (folder) => {
  const { warnings } = await esbuild({
    absWorkingDir: folder,
    entryPoints: ['page.js'],
    outdir: 'site',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    logLevel: 'silent',
  })
  return warnings.map(({ text }) => text)
}

const withVite: Bundle = async (folder) => {
  const warnings: string[] = []
  const note = (text: string) => void warnings.push(text)
  const customLogger = { ...createLogger('silent'), warn: note, warnOnce: note, error: note }
  // As in a shell: some warnings are for production only, and the test runner says that this is none.
  vi.stubEnv('NODE_ENV', 'production')
  try {
    await vite({
      root: folder,
      configFile: false,
      customLogger,
      logLevel: 'silent',
      build: { outDir: 'site' },
    })
    return warnings
  } finally {
    vi.unstubAllEnvs()
  }
}

describe('in a page', () => {
  withBrowser((openPage) => {
    it.each([
      ['esbuild', withEsbuild],
      ['Vite', withVite],
    ])(
      'bundled by %s: no warning, nothing of Node, and it talks at each QoS',
      async (_, bundle) => {
        expect(await bundled(bundle, openPage, urls[1])).toEqual(flawless(wellDone))
      },
    )

    it('would be found out if it failed, or if the page complained', async () => {
      const script =
        "console.warn('odd')\nglobalThis.outcome = 'nothing'\nqueueMicrotask(() => { throw new Error('uncaught') })\n"
      const folder = await project({ 'page.js': script, 'index.html': pageWith('/page.js') })
      expect(await openPage(folder, '')).toEqual({
        outcome: 'nothing',
        console: ['odd', 'Error: uncaught'],
      })
    })
  })
})
