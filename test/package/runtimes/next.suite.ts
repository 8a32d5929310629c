/** The installed package in a Next application: a client component, a server component and a route handler, each of them talking to a broker. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Broker, startAedes } from '../../real/brokers.js'
import { nodeIn } from '../browser-code.js'
import { project, removeProjects, requireDist, run } from '../fixture.js'
import { round, wellDone, withBrowser } from '../page.js'
import { withFramework } from './fetched.js'

const layout = `
export default ({ children }) => <html lang="en"><head><title>round</title><link rel="icon" href="data:," /></head><body>{children}</body></html>
`

const server = `import { connect } from 'mqwire'
${round}
export { round }
`

const page = `import { round } from './server'
import { Round } from './client'
export const dynamic = 'force-dynamic'
export default async function Page() {
  return <main><p>{await round(process.env.ROUND_TCP)}</p><Round url={process.env.ROUND_WEBSOCKET} /></main>
}
`

const client = `'use client'
import { connect } from 'mqwire'
import { useEffect } from 'react'
${round}
export function Round({ url }) {
  useEffect(() => {
    globalThis.outcome = round(url)
  }, [url])
  return null
}
`

const route = `import { round } from '../server'
export const dynamic = 'force-dynamic'
export const GET = async () => new Response(await round(process.env.ROUND_TCP))
`

// Only says where the packages lie: beside the project, not in it.
const config =
  "import path from 'node:path'\nexport default { turbopack: { root: path.resolve('..') } }\n"

const files = {
  'next.config.mjs': config,
  'app/layout.jsx': layout,
  'app/server.js': server,
  'app/page.jsx': page,
  'app/client.jsx': client,
  'app/ask/route.js': route,
}

let broker: Broker

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  return () => broker.stop()
})
afterAll(removeProjects)

async function clientChunks(folder: string): Promise<string[]> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.js'))
  const codes = await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')))
  return codes.filter((code) => code.includes('ERR_KEEPALIVE_TIMEOUT'))
}

async function ready(child: ChildProcess): Promise<string> {
  let said = ''
  for await (const text of child.stdout ?? []) {
    said += text
    const found = /http:\/\/localhost:\d+/.exec(said)
    if (found !== null) return found[0]
  }
  throw new Error(said)
}

describe('Next', () => {
  withFramework('next', (packages) => {
    const folder = path.join(packages, `application-${process.pid}`)
    const command = path.join(packages, 'node_modules', 'next', 'dist', 'bin', 'next')
    const env = () => ({
      ...process.env,
      // There Next warns that it has no cache from the build before.
      CI: '',
      NODE_ENV: 'production' as const,
      NEXT_TELEMETRY_DISABLED: '1',
      ROUND_TCP: broker.urls.TCP ?? '',
      ROUND_WEBSOCKET: broker.urls.WebSocket ?? '',
    })
    let child: ChildProcess | undefined

    beforeAll(async () => {
      await cp(await project(files), folder, { recursive: true, verbatimSymlinks: true })
      return async () => {
        if (child?.kill() === true) await once(child, 'exit')
        await rm(folder, { recursive: true, force: true })
      }
    })

    it('is built without a warning, with nothing of Node in what goes to browsers', async () => {
      const { code, output } = await run(
        process.execPath,
        [command, 'build'],
        folder,
        170_000,
        env(),
      )
      expect({ code, output }).toMatchObject({
        code: 0,
        output: expect.stringContaining('Compiled successfully'),
      })
      expect(output).not.toMatch(/warn|⚠/i)
      const chunks = await clientChunks(path.join(folder, '.next', 'static'))
      expect(chunks.length).toBeGreaterThan(0)
      for (const code of chunks) expect(await nodeIn(code)).toEqual([])
    }, 180_000)

    withBrowser((_, visit) => {
      it('talks at each QoS from a server component, a route handler and a client component', async () => {
        child = spawn(process.execPath, [command, 'start', '--port', '0'], {
          cwd: folder,
          env: env(),
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const url = await ready(child)
        expect(await (await fetch(`${url}/ask`)).text()).toBe(wellDone)
        expect(await (await fetch(url)).text()).toContain(`<p>${wellDone}</p>`)
        expect(await visit(url)).toEqual({ outcome: wellDone, console: [] })
      })
    })
  })
})
