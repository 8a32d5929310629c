/** What new users write wrong, in plain JavaScript on the built package: each program says what is wrong and the way out, none is silent. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { requireDist, root, run } from '../../package/fixture.js'
import { freePort } from '../../support/servers.js'
import { type Mistake, mistakes } from './mistakes.js'

interface Served {
  readonly tcp: { readonly port: number }
  readonly ws: { readonly port: number }
  close(): Promise<void>
}

let env: NodeJS.ProcessEnv
let open: Served[] = []

beforeAll(async () => {
  await requireDist()
  const { MemoryBroker } = (await import(`${root}/dist/testing/node.js`)) as {
    MemoryBroker: new (options?: object) => { serve(options: object): Promise<Served> }
  }
  const local = { tcp: 0, ws: { port: 0, path: '/mqtt' } }
  const plain = await new MemoryBroker({ maximumPacketSize: 1000 }).serve(local)
  const closed = await new MemoryBroker({ authenticate: () => 0x86 }).serve(local)
  open = [plain, closed]
  env = {
    ...process.env,
    MQTT: `mqtt://127.0.0.1:${plain.tcp.port}`,
    WS: `ws://127.0.0.1:${plain.ws.port}/mqtt`,
    TCP_PORT: String(plain.tcp.port),
    WS_PORT: String(plain.ws.port),
    GUARDED: `mqtt://127.0.0.1:${closed.tcp.port}`,
    NOBODY: `mqtt://127.0.0.1:${await freePort()}`,
  }
})
afterAll(async () => {
  for (const served of open) await served.close()
})

const prelude = `import { Client, connect } from 'mqwire'
const { MQTT, WS, TCP_PORT, WS_PORT, GUARDED, NOBODY } = process.env
const pause = (delay) => new Promise((resolve) => setTimeout(resolve, delay))
setTimeout(() => process.exit(99), 15_000).unref()
`

it('there are fifty at least', () => {
  expect(mistakes.length).toBeGreaterThanOrEqual(50)
})

it.concurrent.each(
  mistakes.map((mistake): [string, Mistake] => [mistake.program.replaceAll('\n', '; '), mistake]),
)('%s', async (_name, { program, says }) => {
  const { code, output } = await run(
    process.execPath,
    ['--input-type=module', '--eval', prelude + program],
    root,
    30_000,
    env,
  )
  // It ends by itself.
  expect(code).not.toBe(99)
  for (const text of says) expect(output).toContain(text)
})
