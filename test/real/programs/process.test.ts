/** What a process with clients prints and leaves open when it ends. `npm run lab -- endurance leaks` loses thousands of connections. */
import { type ChildProcess, execFile } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireDist, root } from '../../package/fixture.js'
import { freePort, listening } from '../../support/servers.js'
import { type Broker, startAedes } from '../brokers.js'

const sockets = new Set<Socket>()
const silent = createServer((socket) => {
  sockets.add(socket.on('error', () => undefined))
})
let broker: Broker
let urls: Readonly<Record<string, string>>

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  const [silentPort, closedPort] = [await listening(silent), await freePort()]
  urls = {
    MQTT_URL: broker.urls.TCP ?? '',
    SILENT_URL: `mqtt://127.0.0.1:${silentPort}`,
    CLOSED_URL: `mqtt://127.0.0.1:${closedPort}`,
  }
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  silent.close()
  await broker.stop()
})

interface Ended {
  readonly code: number | null
  readonly reports: readonly Readonly<Record<string, unknown>>[]
  readonly errors: string
}

/** Runs a program of this folder to its end: what it printed, one JSON object on a line, and its error stream. */
function ends(
  file: string,
  variables: Readonly<Record<string, string>>,
  ...flags: string[]
): Promise<Ended> {
  const args = ['--unhandled-rejections=strict', ...flags, path.join(import.meta.dirname, file)]
  const options = { cwd: root, env: { ...process.env, ...urls, ...variables }, timeout: 30_000 }
  return new Promise((resolve) => {
    const child: ChildProcess = execFile(process.execPath, args, options, (_, output, errors) => {
      const lines = output.split('\n').filter((line) => line !== '')
      resolve({ code: child.exitCode, reports: lines.map((line) => JSON.parse(line)), errors })
    })
  })
}

describe('a process', () => {
  it.each([
    ['idle', 'idle'],
    ['connected', 'connected'],
    ['handshake', 'connecting'],
    ['credentials', 'connecting'],
    ['waiting', 'connecting'],
    ['reconnecting', 'reconnecting'],
  ])(
    'ends by itself after disconnect({ timeout: 0 }) with the client %s, and every promise has settled',
    async (at, state) => {
      const { code, reports, errors } = await ends('exit.js', { STATE: at })
      const ofUnsent =
        /^\(node:\d+\) \[MQWIRE_(?:PUBLISH_REFUSED|UNSENT)\] .*\n|^\(Use `node --trace-warnings .*\n/gm
      expect({ code, errors: errors.replace(ofUnsent, '') }).toEqual({ code: 0, errors: '' })
      expect(reports.at(-1)).toMatchObject({ state, now: 'closed' })
      expect(reports.at(-1)?.['milliseconds']).toBeLessThan(250)
    },
  )

  it('says nothing of clients that were collected, and has no listener of theirs', async () => {
    const { code, reports, errors } = await ends('unsent.js', {}, '--expose-gc')
    expect({ code, reports, errors }).toEqual({ code: 0, reports: [{ listeners: 0 }], errors: '' })
  })
})
