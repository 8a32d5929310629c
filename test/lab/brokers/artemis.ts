/**
 * Starts Apache ActiveMQ Artemis, built here from `artemis/` where there are Java and Maven: a Java process with the broker as a library.
 *
 * It assumes that what it starts was built. Nothing of mqwire is used here.
 */
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { account, type Broker, type Setup } from '../../real/brokers.js'
import { ProcessBroker, startProcess } from '../../real/process-broker.js'
import type { Identity } from '../../support/certificates.js'
import { freePorts } from '../../support/servers.js'
import { keystoreOf, keystoreSecret } from './hivemq.js'

/** A Java process with a broker takes its time on a busy machine. */
const patience = 60_000

/** The version that pom.xml asks for. */
export function artemisVersion(): string {
  const file = readFileSync(new URL('artemis/pom.xml', import.meta.url), 'utf8')
  return /artemis-server<\/artifactId>\s*<version>([^<]+)</.exec(file)?.[1] ?? ''
}

/** Starts it, with a listener for TCP and WebSocket, which are one for it, and one for TLS. */
export function startArtemis(built: string, setup: Setup, server: Identity): Promise<Broker> {
  return startProcess(() => make(built, setup, server))
}

async function make(built: string, setup: Setup, server: Identity): Promise<ProcessBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
  const ports = await freePorts(2)
  const [tcp = 0, tls = 0] = ports
  const classes = [join(built, 'target', 'classes'), join(built, 'lib', '*')].join(':')
  return new ProcessBroker({
    name: 'Artemis',
    command: 'java',
    parameters: [
      '-Xmx2g',
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-cp',
      classes,
      'ProgramBroker',
      folder,
      setup,
      account.username,
      account.password,
      String(tcp),
      String(tls),
      keystoreOf(folder, server),
      keystoreSecret,
    ],
    folder,
    urls: {
      TCP: `mqtt://127.0.0.1:${tcp}`,
      WebSocket: `ws://127.0.0.1:${tcp}/mqtt`,
      TLS: `mqtts://localhost:${tls}`,
    },
    doors: ports,
    patience,
    ready: 'ProgramBroker is ready',
  })
}
