/** Where the broker in memory may run. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { MemoryBroker } from '../../src/testing/index.js'
import { blank, readSources } from '../rules/code/source.js'

const folder = new URL('../../src/testing/broker/', import.meta.url)
const sources = [...readSources()].filter(([file]) => file.startsWith('testing/broker/'))

describe('the broker', () => {
  it('can be bundled for a browser, and keeps no process alive while it waits', async () => {
    const program = `
      import { encode } from '../../wire/encode.ts'
      import { MemoryBroker } from './broker.ts'
      const broker = new MemoryBroker()
      const will = { topic: 'w', properties: { willDelayInterval: 500 } }
      const connect = (clientId) => {
        const transport = broker.connect()
        transport.open({ chunk() {}, drain() {}, closed() {}, buffer: () => new Uint8Array(9), read() {} })
        transport.write(encode({ type: 'connect', clientId, keepAlive: 600, properties: { sessionExpiryInterval: 600 }, will }))
        return transport
      }
      const say = () => console.log([...broker.sessions.values()].map(({ clientId, connected }) => clientId + ' ' + connected).join())
      broker.on('connect', ({ client }) => client.clientId === 'leaves' && leaves.destroy())
      broker.on('disconnect', say)
      broker.connect()
      connect('stays')
      const leaves = connect('leaves')
    `
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: fileURLToPath(folder), loader: 'ts' },
      bundle: true,
      platform: 'browser',
      format: 'esm',
      write: false,
    })
    const code = outputFiles[0]?.text ?? ''
    expect(
      execFileSync(process.execPath, ['--input-type=module', '-'], {
        input: code,
        encoding: 'utf8',
        timeout: 10_000,
      }),
    ).toBe('stays true,leaves false\n')
  })

  it('uses no name that browsers do not have, and no time or chance but its clock', () => {
    for (const [name, code] of sources) {
      const words = blank(code).match(
        /\b(?:Buffer|process|setImmediate|require|global|Date|Math\.random|setTimeout|setInterval|performance)\b/g,
      )
      expect([name, words ?? []]).toEqual([
        name,
        name === 'testing/broker/common/clock.ts' ? ['performance', 'setTimeout'] : [],
      ])
    }
  })
})

it('dial heeds its signal', async () => {
  const broker = new MemoryBroker()
  await expect(broker.dial({}, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow(
    'late',
  )
})
