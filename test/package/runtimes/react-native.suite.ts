/**
 * The installed package in a bundle for React Native: made by Metro with React Native's own settings, compiled by the compiler of the current Hermes, and
 * run among the globals that React Native has. There is no Hermes to be had that runs outside a phone: the engine is V8.
 */
import { chmod, cp, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../real/brokers.js'
import { type Outcome, project, removeProjects, requireDist, run } from '../fixture.js'
import { round, wellDone } from '../round.js'
import { withFramework } from './fetched.js'
import { runner } from './react-native.js'

const index = `import { connect } from 'mqwire'
${round}
globalThis.outcome = round(globalThis.url)
`

// Metro as `react-native bundle` calls it, but that React Native itself, which would run first, is not there. Prints the modules of the bundle.
const bundling = `
const { createRequire } = require('node:module')
const path = require('node:path')
const { writeFileSync } = require('node:fs')
const packages = path.resolve('..')
const tool = createRequire(path.join(packages, 'package.json'))
const { getDefaultConfig, mergeConfig } = tool('@react-native/metro-config')
const { runBuild } = tool('metro')
const report = ({ type, message }) => /warn|error|fail/.test(type) && console.error(type, message ?? '')
const config = mergeConfig(getDefaultConfig(__dirname), {
  watchFolders: [packages],
  resolver: { nodeModulesPaths: [path.join(packages, 'node_modules')] },
  serializer: { getModulesRunBeforeMainModule: () => [] },
  reporter: { update: report },
  cacheStores: [],
})
runBuild(config, { entry: process.argv[2], platform: 'android', dev: false, minify: true }).then(({ code, map }) => {
  writeFileSync('bundle.js', code)
  const { sources, sections = [] } = JSON.parse(map)
  for (const name of sources ?? sections.flatMap((section) => section.map.sources)) console.log(name)
})
`

let broker: Broker

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  return () => broker.stop()
})
afterAll(removeProjects)

describe('React Native', () => {
  withFramework('react-native', (packages) => {
    const folder = path.join(packages, `application-${process.pid}`)
    const bundle = (entry: string) => run(process.execPath, ['bundle.cjs', entry], folder, 170_000)

    beforeAll(async () => {
      const installed = await project({
        'index.js': index,
        'bundle.cjs': bundling,
        'run.cjs': runner,
      })
      await cp(installed, folder, { recursive: true, verbatimSymlinks: true })
      return () => rm(folder, { recursive: true, force: true })
    })

    let made: Promise<Outcome> | undefined
    const bundled = () => {
      made ??= bundle('index.js')
      return made
    }

    it('is bundled by Metro without a warning, from modules for browsers alone', async () => {
      const { code, output } = await bundled()
      expect({ code, output }).toMatchObject({
        code: 0,
        output: expect.stringContaining(path.join('mqwire', 'dist', 'client', 'browser.js')),
      })
      expect(output).not.toMatch(/warn|error:|node_modules.ws.|client.node\.js|websocket-node/)
      expect(await readFile(path.join(folder, 'bundle.js'), 'utf8')).not.toMatch(/["'`]node:/)
    }, 180_000)

    it('talks at each QoS among the globals of React Native', async () => {
      await bundled()
      expect(
        await run(
          process.execPath,
          ['run.cjs', 'bundle.js', broker.urls.WebSocket ?? ''],
          folder,
          30_000,
        ),
      ).toEqual({
        code: 0,
        output: wellDone,
      })
    }, 180_000)

    const compilers: Readonly<Record<string, string>> = {
      linux: 'linux64-bin/hermesc',
      darwin: 'osx-bin/hermesc',
      win32: 'win64-bin/hermesc.exe',
    }
    it('compiles for Hermes', async () => {
      const compiler = path.join(
        packages,
        'node_modules',
        'hermes-compiler',
        'hermesc',
        compilers[process.platform] ?? '',
      )
      await bundled()
      await chmod(compiler, 0o755)
      expect(
        await run(
          compiler,
          ['-emit-binary', '-O', '-w', '-out', 'bundle.hbc', 'bundle.js'],
          folder,
        ),
      ).toEqual({ code: 0, output: '' })
    })
  })
})
