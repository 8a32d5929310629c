/**
 * Starts HiveMQ Community Edition, built here from `hivemq/` where there are Java and Maven: a Java process with the broker as a library.
 *
 * It assumes that what it starts was built. Nothing of mqwire is used here.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { account, type Broker, limits, type Setup } from '../../real/brokers.js'
import { ProcessBroker, startProcess } from '../../real/process-broker.js'
import type { Identity } from '../../support/certificates.js'
import { freePorts } from '../../support/servers.js'

/** Of the key stores that `keystoreOf` makes. */
export const keystoreSecret = 'keystore'
/** A Java process with a broker takes its time on a busy machine. */
const patience = 60_000
/** Above what the tests send. */
const largestPacket = 64 * 1024 * 1024

/** The version that pom.xml asks for. */
export function hivemqVersion(): string {
  const file = readFileSync(new URL('hivemq/pom.xml', import.meta.url), 'utf8')
  return /embedded<\/artifactId>\s*<version>([^<]+)</.exec(file)?.[1] ?? ''
}

/** The listeners that its configuration knows, such as `tcp-listener`. */
export function hivemqListeners(built: string): string[] {
  const file = join(built, 'lib', `hivemq-community-edition-embedded-${hivemqVersion()}.jar`)
  const schema = execFileSync('unzip', ['-p', file, 'config.xsd'], { encoding: 'utf8' })
  return [...schema.matchAll(/element name="([a-z-]+-listener)"/g)].map(([, name = '']) => name)
}

/** Starts it, with a listener for each transport that it has. */
export function startHivemq(built: string, setup: Setup, server: Identity): Promise<Broker> {
  return startProcess(() => make(built, setup, server))
}

async function make(built: string, setup: Setup, server: Identity): Promise<ProcessBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
  const ports = await freePorts(4)
  const [tcp = 0, tls = 0, ws = 0, wss = 0] = ports
  for (const name of ['data', 'extensions']) mkdirSync(join(folder, name))
  const keystore = keystoreOf(folder, server)
  writeFileSync(join(folder, 'config.xml'), configuration({ tcp, tls, ws, wss }, keystore, setup))
  const classes = [join(built, 'target', 'classes'), join(built, 'lib', '*')].join(':')
  return new ProcessBroker({
    name: 'HiveMQ',
    command: 'java',
    // Its start costs less than half with the first compiler alone; it is not asked to be fast.
    parameters: [
      '-Xmx1g',
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-cp',
      classes,
      'FeatureBroker',
      folder,
      setup,
      account.username,
      account.password,
    ],
    folder,
    urls: {
      TCP: `mqtt://127.0.0.1:${tcp}`,
      TLS: `mqtts://localhost:${tls}`,
      WebSocket: `ws://127.0.0.1:${ws}/mqtt`,
      'Secure WebSocket': `wss://localhost:${wss}/mqtt`,
    },
    doors: ports,
    patience,
    ready: 'FeatureBroker is ready',
  })
}

/** A key store in a folder, for Java. */
export function keystoreOf(folder: string, server: Identity): string {
  const [certificate, key, keystore] = ['cert.pem', 'key.pem', 'keystore.p12'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeFileSync(certificate, server.cert)
  writeFileSync(key, server.key)
  const parameters = [
    'pkcs12',
    '-export',
    '-in',
    certificate,
    '-inkey',
    key,
    '-out',
    keystore,
    '-passout',
    `pass:${keystoreSecret}`,
  ]
  execFileSync('openssl', parameters, { stdio: 'pipe' })
  return keystore
}

function configuration(
  ports: { tcp: number; tls: number; ws: number; wss: number },
  keystore: string,
  setup: Setup,
): string {
  const at = (port: number): string => `<port>${port}</port><bind-address>127.0.0.1</bind-address>`
  const path = '<path>/mqtt</path>'
  const encrypted = `<tls><keystore><path>${keystore}</path><password>${keystoreSecret}</password><private-key-password>${keystoreSecret}</private-key-password></keystore></tls>`
  return `<?xml version="1.0"?>
<hivemq>
  <listeners>
    <tcp-listener>${at(ports.tcp)}</tcp-listener>
    <tls-tcp-listener>${at(ports.tls)}${encrypted}</tls-tcp-listener>
    <websocket-listener>${at(ports.ws)}${path}</websocket-listener>
    <tls-websocket-listener>${at(ports.wss)}${path}${encrypted}</tls-websocket-listener>
  </listeners>
  <mqtt>
    <queued-messages><max-queue-size>100000</max-queue-size></queued-messages>
    <packets><max-packet-size>${setup === 'narrow' ? limits.maximumPacketSize : largestPacket}</max-packet-size></packets>
    ${setup === 'narrow' ? narrow : ''}${setup === 'lesser' ? lesser : ''}
  </mqtt>
  <anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics>
  <persistence><mode>${setup === 'durable' ? 'file' : 'in-memory'}</mode></persistence>
</hivemq>
`
}

const narrow = `<receive-maximum><server-receive-maximum>${limits.receiveMaximum}</server-receive-maximum></receive-maximum>
    <keep-alive><max-keep-alive>${limits.keepAlive}</max-keep-alive><allow-unlimited>false</allow-unlimited></keep-alive>`

const lesser = `<quality-of-service><max-qos>1</max-qos></quality-of-service>
    <retained-messages><enabled>false</enabled></retained-messages>`
