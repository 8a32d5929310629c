/** `mqwire/testing` in the hands of a user: examples/testing lets an hour pass in several test runners, and in a page. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { link, node, project, removeProjects, requireDist, root } from './fixture.js'
import { pageWith, withBrowser } from './page.js'

const read = (name: string): string =>
  readFileSync(path.join(root, 'examples', 'testing', name), 'utf8')
const files = { 'meter.js': read('meter.js'), 'meter.test.js': read('meter.test.js') }
const title = 'a meter comes back after 20 minutes without a link, with the readings that are fresh'
const nodeTest = "import { test } from 'node:test'"
const inVitest = files['meter.test.js'].replace(nodeTest, "import { test } from 'vitest'")
const inFakeTime = files['meter.test.js'].replace(
  nodeTest,
  "import { test, vi } from 'vitest'\nvi.useFakeTimers()",
)

beforeAll(requireDist)
afterAll(removeProjects)

const service = `
import { connect } from 'mqwire'
export const serve = () => connect('mqtt://127.0.0.1:1', { clientId: 'service' })
`

const hour = `
  const client = await serve()
  await world.pass(3_600_000)
  if (client.state !== 'connected' || !world.broker.clients.has('service')) throw new Error(client.state)
  await world.close()
`

const mockedInVitest = `
import { VirtualWorld } from 'mqwire/testing'
import { test, vi } from 'vitest'
import { serve } from './service.js'
const world = new VirtualWorld()
vi.mock('mqwire', async (original) => ({ ...(await original()), connect: (...given) => world.connect(...given) }))
test('an hour', async () => {${hour}})
`

const mockedInNode = `
import { mock, test } from 'node:test'
import * as mqwire from 'mqwire'
import { VirtualWorld } from 'mqwire/testing'
test('an hour', async () => {
  const world = new VirtualWorld()
  mock.module('mqwire', { namedExports: { ...mqwire, connect: world.connect } })
  const { serve } = await import('./service.js')${hour}})
`

const page = {
  'index.html': pageWith('/page.js'),
  'timers.js':
    'export const setTimeout = (delay, value) => new Promise((resolve) => globalThis.setTimeout(resolve, delay, value))\n',
  'runner.js': `
export function test(title, run) {
  globalThis.outcome = run().then(() => 'passed: ' + title, String)
}
`,
  'assert.js': `
function ok(value, what = 'not ok') {
  if (!value) throw new Error(what)
}
function deepEqual(one, other) {
  ok(JSON.stringify(one) === JSON.stringify(other), JSON.stringify(one) + ' is not ' + JSON.stringify(other))
}
export default { ok, deepEqual, equal: deepEqual }
`,
}

describe('a test that lets an hour pass', () => {
  it("runs in Node's own test runner, which ends by itself", async () => {
    const folder = await project(files)
    const { code, output } = await node(
      ['--test', '--test-reporter=tap', 'meter.test.js'],
      folder,
      20_000,
    )
    expect(output).toContain(`ok 1 - ${title}`)
    expect(output).toContain('# pass 1\n# fail 0')
    expect(code).toBe(0)
  })

  it.each([
    ['vitest', inVitest],
    ['vitest with fake timers', inFakeTime],
  ])('runs in %s', async (_, code) => {
    const folder = await project({
      ...files,
      'meter.test.js': code,
      'vite.config.js': "export default { cacheDir: '.vite' }\n",
    })
    await link(folder, 'vitest')
    const said = await node(
      ['node_modules/vitest/vitest.mjs', 'run', '--reporter=tap-flat'],
      folder,
      40_000,
    )
    expect(said.output).toContain(title)
    expect(said.output).not.toContain('not ok')
    expect(said.code).toBe(0)
  })

  it.each([
    [
      'vi.mock',
      'vitest',
      mockedInVitest,
      ['node_modules/vitest/vitest.mjs', 'run', '--reporter=tap-flat'],
    ],
    [
      'mock.module',
      'node:test',
      mockedInNode,
      ['--experimental-test-module-mocks', '--test', '--test-reporter=tap', 'service.test.js'],
    ],
  ])('tests a program that imports connect itself, by %s', async (_, runner, code, command) => {
    const folder = await project({
      'service.js': service,
      'service.test.js': code,
      'vite.config.js': "export default { cacheDir: '.vite' }\n",
    })
    if (runner === 'vitest') await link(folder, 'vitest')
    const said = await node(command, folder, 40_000)
    expect(said.output).toMatch(/^ok 1 .*an hour/m)
    expect(said.code).toBe(0)
  })

  it('fails when the program does', async () => {
    const late = files['meter.js'].replace('sleep(60_000,', 'sleep(61_000,')
    expect(late).not.toBe(files['meter.js'])
    const folder = await project({ ...files, 'meter.js': late })
    const flags = ['--test', '--test-reporter=tap', 'meter.test.js']
    expect((await node(flags, folder, 20_000)).output).toContain('not ok 1')
  })

  withBrowser((openPage) => {
    it('runs in a page, with the asserts and the test runner of that', async () => {
      const folder = await project({ ...files, ...page })
      const alias = {
        'node:test': './runner.js',
        'node:assert/strict': './assert.js',
        'node:timers/promises': './timers.js',
      }
      const options = {
        bundle: true,
        format: 'esm',
        minify: true,
        logLevel: 'silent',
        alias,
      } as const
      const { warnings } = await build({
        ...options,
        absWorkingDir: folder,
        entryPoints: ['meter.test.js'],
        outfile: 'page.js',
      })
      expect(warnings).toEqual([])
      expect(await openPage(folder, '')).toEqual({ outcome: `passed: ${title}`, console: [] })
    })
  })
})
