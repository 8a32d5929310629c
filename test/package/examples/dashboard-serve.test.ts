/** The server of the dashboard, asked as an attacker would: it has four files, and nothing else comes out of it. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../support/servers.js'
import { requireDist } from '../fixture.js'
import { dashboard } from './dashboard.js'
import { Program } from './program.js'

const { serveDashboard } = await dashboard('serve.js')

/** Asks for a path just as it is written: `fetch` would tidy it up. */
async function ask(origin: string, path: string, method = 'GET') {
  const sent = request({ host: '127.0.0.1', port: new URL(origin).port, path, method }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

describe('the server of the dashboard', () => {
  let site = { origin: '', address: (_settings?: object) => '', stop: async () => {} }
  beforeAll(async () => {
    await requireDist()
    site = await serveDashboard({ port: 1024 })
    return () => site.stop()
  })

  it.each([
    ['/', 'text/html; charset=utf-8', '<title>mqwire dashboard</title>'],
    [
      '/?url=ws://127.0.0.1:1&topic=%23',
      'text/html; charset=utf-8',
      '<title>mqwire dashboard</title>',
    ],
    ['/dashboard.js', 'text/javascript; charset=utf-8', 'MqttError'],
    ['/dashboard.css', 'text/css; charset=utf-8', 'light-dark('],
    ['/icon.svg', 'image/svg+xml', '<svg'],
  ])('gives %s', async (path, type, part) => {
    const { status, headers, body } = await ask(site.origin, path)
    expect([status, headers['content-type']]).toEqual([200, type])
    expect(body).toContain(part)
    expect(Number(headers['content-length'])).toBe(Buffer.byteLength(body))
  })

  it.each([
    ...['/package.json', '/serve.js', '/main.js', '/../../package.json', '/..%2f..%2fpackage.json'],
    ...[
      '/%2e%2e/%2e%2e/package.json',
      '/..\\..\\package.json',
      '//etc/passwd',
      '/icon.svg/../../../package.json',
    ],
    ...['/icon.svg%00.html', '/__proto__', '/constructor', 'http://127.0.0.1/icon.svg', '*'],
  ])('has nothing at %s', async (path) => {
    const { status, body } = await ask(site.origin, path)
    expect([status, body]).toEqual([404, 'there is nothing here\n'])
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('does not do %s', async (method) => {
    expect(await ask(site.origin, '/', method)).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    })
  })

  it('answers HEAD with the headers alone', async () => {
    const [head, get] = [
      await ask(site.origin, '/icon.svg', 'HEAD'),
      await ask(site.origin, '/icon.svg'),
    ]
    expect([head.status, head.body, head.headers['content-length']]).toEqual([
      200,
      '',
      get.headers['content-length'],
    ])
  })

  it.each(['/', '/dashboard.js', '/nothing'])(
    'lets %s load, run and be framed by nothing from elsewhere',
    async (path) => {
      const { headers } = await ask(site.origin, path)
      const policy = String(headers['content-security-policy']).split('; ')
      for (const name of ['script-src', 'style-src', 'img-src'])
        expect(policy).toContain(`${name} 'self'`)
      for (const name of ['default-src', 'base-uri', 'form-action', 'frame-ancestors'])
        expect(policy).toContain(`${name} 'none'`)
      expect(policy).toContain("connect-src 'self' ws: wss:")
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      })
    },
  )

  it('has no script and no style in the page itself', async () => {
    const { body } = await ask(site.origin, '/')
    expect(body.match(/<script[^>]*>[^<]/g) ?? body.match(/ on\w+=| style=|<style/g)).toBeNull()
  })

  it('takes the next port when one is taken, and stops though somebody is connected', async () => {
    const { port } = new URL(site.origin)
    const other = await serveDashboard({ port: Number(port) })
    expect(Number(new URL(other.origin).port)).toBeGreaterThan(Number(port))
    const socket = connect(Number(new URL(other.origin).port), '127.0.0.1')
    await once(socket, 'connect')
    const closed = once(socket, 'close')
    await other.stop()
    await closed
    await expect(ask(other.origin, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('says what address it has with settings', () => {
    expect(site.address()).toBe(site.origin)
    expect(site.address({ url: 'ws://127.0.0.1:9001', topic: 'a/#&x' })).toBe(
      `${site.origin}?url=ws://127.0.0.1:9001&topic=a/%23%26x`,
    )
  })
})

describe('npm start and the dashboard', () => {
  const intro = async (args: string, url = ''): Promise<string> => {
    const program = new Program(
      'demo/main.js',
      `--devices 1 --duration 1 ${args}`.trim().split(' '),
      url,
    )
    await program.prints('Broker').catch(() => undefined)
    program.signal('SIGKILL')
    return (await program.ending).output
  }

  it('takes a port, or leaves it out', async () => {
    const port = await freePort()
    const address = `^Dashboard  http://127\\.0\\.0\\.1:${port}/\\?url=ws://127\\.0\\.0\\.1:\\d+/mqtt&topic=mqwire-demo/%23&`
    expect(await intro(`--port ${port}`)).toMatch(new RegExp(address, 'm'))
    expect(await intro('--no-dashboard')).toMatch(/^Broker/)
  })
})
