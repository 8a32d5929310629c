/** What is printed in Node: programs that are broken in many ways, and `console.log` of everything that a program gets into its hands. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packed, project, removeProjects, requireDist, root } from '../fixture.js'
import { inNode } from './broken.js'
import { printed, type Servers, startServers } from './in-node.js'
import { expectKept } from './kept.js'

/** Of each lane: programs with one client id would take each other's session over. */
let lanes: readonly Servers[]
let servers: Servers

beforeAll(async () => {
  await requireDist()
  await packed()
  lanes = await Promise.all([startServers(), startServers()])
  servers = lanes[0] as Servers
  return () => Promise.all(lanes.map((each) => each.stop()))
})
afterAll(removeProjects)

const source = (name: string) =>
  readFile(`${root}/test/package/transcript/programs/${name}.js`, 'utf8')

it('is what is kept for programs of the README, and each line follows the rules', async () => {
  const folder = await project({})
  const programs = await inNode()
  // Two at a time: starting a process keeps one processor busy.
  const transcript: [string, string][] = []
  const next = programs.entries()
  const lane = async (own: Servers): Promise<void> => {
    for (const [index, { title, code }] of next)
      transcript[index] = [title, await printed(folder, own, `program-${index}.mjs`, code)]
  }
  await Promise.all(lanes.map(lane))
  expectKept(
    transcript.map(([title, text], index) => [
      title,
      text.replaceAll(`program-${index}.mjs`, 'program.mjs'),
    ]),
  )
}, 60_000)

it('is what is kept for errors and for objects, and each line follows the rules', async () => {
  const folder = await project({})
  const names = ['connecting', 'calling', 'objects']
  const texts = await Promise.all(
    names.map(
      async (name) =>
        [name, await printed(folder, servers, `${name}.js`, await source(name))] as const,
    ),
  )
  expectKept(texts)
}, 60_000)

it('shows all lines of a stack when asked for', async () => {
  const code =
    "import { connect, MqttError } from 'mqwire'\nMqttError.wholeStacks = true\nawait connect('localhost:1883')\n"
  expect(await printed(await project({}), servers, 'whole.js', code)).toContain('/mqwire/dist/')
})
