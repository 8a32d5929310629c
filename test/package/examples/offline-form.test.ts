/** `npm run offline-form`: what it serves and prints, and how it ends. What the page does is seen in test/browser/offline-form.test.ts. */
import { beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/node.js'
import { requireDist } from '../fixture.js'
import { Program } from './program.js'

beforeAll(requireDist)

describe('npm run offline-form', () => {
  it('serves the page and what it is made of, under a policy that lets nothing else in, and prints each note that arrives', async () => {
    const program = new Program('offline-form/serve.js', ['--port', '0', '--broker-port', '0'])
    await program.prints('Ctrl-C stops')
    const [, address = '', url = ''] =
      /The form is at (http:\S+?)\?url=(ws:\S+)/.exec(program.output) ?? []
    const page = await fetch(address)
    expect(page.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self';/,
    )
    const html = await page.text()
    expect(html).not.toMatch(/<script(?! type="module" src="form\.js")| on[a-z]+=| style=/)
    for (const name of ['style.css', 'form.js', 'service-worker.js']) {
      const file = await fetch(new URL(name, address))
      expect([file.status, (await file.text()).length > 500]).toEqual([200, true])
    }
    const client = await connect(url)
    await client.publish('inspections/notes', '{"place":"pump"}', { qos: 2 })
    await program.prints('inspections/notes {"place":"pump"}')
    await client.disconnect()
    await program.stop()
  })

  it('says so when the port of its broker is taken', async () => {
    const first = new Program('offline-form/serve.js', ['--port', '0', '--broker-port', '0'])
    await first.prints('Ctrl-C stops')
    const [, port = ''] = /url=ws:\/\/127\.0\.0\.1:(\d+)/.exec(first.output) ?? []
    const second = new Program('offline-form/serve.js', ['--port', '0', '--broker-port', port])
    expect(await second.ends(1)).toMatch(/^It could not start: .*--help shows/)
    await first.stop('SIGTERM')
  })
})
