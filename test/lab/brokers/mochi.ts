/**
 * Starts mochi-mqtt, built here from `mochi/` where there is a Go toolchain.
 *
 * It assumes that what it starts was built. Nothing of mqwire is used here.
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { account, type Broker, type Setup } from '../../real/brokers.js'
import { ProcessBroker, startProcess } from '../../real/process-broker.js'
import type { Identity } from '../../support/certificates.js'
import { freePorts } from '../../support/servers.js'

/** The version that go.mod asks for. */
export function mochiVersion(): string {
  const file = readFileSync(new URL('mochi/go.mod', import.meta.url), 'utf8')
  return /mochi-mqtt\/server\/v2 v(\S+)/.exec(file)?.[1] ?? ''
}

/** Starts it, with a listener for each transport. @param more other flags of `main.go` */
export const startMochi = (
  program: string,
  setup: Setup,
  server: Identity,
  more: Readonly<Record<string, string>> = {},
): Promise<Broker> => startProcess(() => make(program, setup, server, more))

async function make(
  program: string,
  setup: Setup,
  server: Identity,
  more: Readonly<Record<string, string>>,
): Promise<ProcessBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
  const [tcp = 0, tls = 0, ws = 0, wss = 0] = await freePorts(4)
  const [certificate, key, socket] = ['cert.pem', 'key.pem', 'socket'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeFileSync(certificate, server.cert)
  writeFileSync(key, server.key)
  const options = {
    setup,
    ...account,
    users: JSON.stringify({ [account.username]: account.password }),
    database: join(folder, 'database'),
    tcp: `127.0.0.1:${tcp}`,
    tls: `127.0.0.1:${tls}`,
    ws: `127.0.0.1:${ws}`,
    wss: `127.0.0.1:${wss}`,
    unix: socket,
    cert: certificate,
    key,
    ...more,
  }
  return new ProcessBroker({
    name: 'mochi',
    command: join(program, 'broker'),
    parameters: Object.entries(options).map(([name, value]) => `-${name}=${value}`),
    folder,
    urls: {
      TCP: `mqtt://127.0.0.1:${tcp}`,
      TLS: `mqtts://localhost:${tls}`,
      WebSocket: `ws://127.0.0.1:${ws}`,
      'Secure WebSocket': `wss://localhost:${wss}`,
      'Unix socket': `unix://${socket}`,
    },
    doors: [tcp, tls, ws, wss, socket],
  })
}
