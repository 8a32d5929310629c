/**
 * `mqwire doctor`: what works between here and a broker, layer by layer.
 */
import { Command } from 'commander'
import { Client } from 'mqwire'
import {
  type ConnectionValues,
  clientOptions,
  endpointOf,
  option,
  withConnection,
} from '../common/connection.js'
import { Ending } from '../common/ending.js'
import { type Colours, coloursOf, ProgressLine, write } from '../common/terminal.js'
import { topic } from '../common/values.js'
import { type Finding, Findings, type Verdict } from './finding.js'
import { lookAtHandshake } from './look.js'
import { lookAtNetwork } from './network.js'
import { probe } from './probes.js'

interface DoctorValues extends ConnectionValues {
  readonly probe?: boolean
  readonly prefix: string
  readonly json?: boolean
}

const examples = `
By default it connects, looks, and publishes nothing. Exit code 0 when nothing differs, 2 when MQTT is not reached,
3 when the broker refuses the connection or does not keep what it announces.

Examples:
  mqwire doctor mqtts://broker.example
  mqwire doctor wss://broker.example/mqtt --username me --password-file secret
  mqwire doctor mqtt://127.0.0.1 --probe --prefix test/doctor
`

/** Defines the command. */
export function doctorCommand(signal: AbortSignal): Command {
  const command = new Command('doctor')
    .description('look at a broker, layer by layer')
    .argument('[url]', 'broker, as --url')
    .addOption(option('--probe', 'try each feature, on topics of its own'))
    .addOption(
      option('--prefix <topic>', 'topics of --probe are below this one', topic, 'mqwire-doctor'),
    )
    .addOption(option('--json', 'print one JSON object'))
  return withConnection(command)
    .addHelpText('after', examples)
    .action((url: string | undefined, values: DoctorValues) =>
      interruptible(examine(url === undefined ? values : { ...values, url }, signal), signal),
    )
}

// What is left behind ends with the process.
function interruptible(work: Promise<void>, signal: AbortSignal): Promise<void> {
  work.catch(() => undefined)
  return Promise.race([
    work,
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    ),
  ])
}

async function examine(values: DoctorValues, signal: AbortSignal): Promise<void> {
  const endpoint = endpointOf(values)
  const colours = coloursOf(process.stdout)
  const progress = new ProgressLine()
  const lines: Promise<void>[] = []
  const findings = new Findings((finding) => {
    progress.clear()
    signal.throwIfAborted()
    if (!values.json) lines.push(write(lineOf(finding, colours)))
  })
  const options = { ...(await clientOptions(values, signal)), logger: null }
  // Refuses a URL or an option that is wrong, and connects to nothing.
  await new Client(endpoint, options).destroy()
  const timeout = values.connectTimeout ?? 10_000
  const reached = await lookAtNetwork(endpoint, findings, timeout)
  const negotiated = reached ? await lookAtHandshake(endpoint, options, findings) : undefined
  if (values.probe && negotiated !== undefined)
    await probe(endpoint, options, values.prefix, negotiated, findings, signal, (check) =>
      progress.show(() => `trying ${check} …`),
    )
  progress.clear()
  if (values.json)
    await write(
      `${JSON.stringify({ url: withoutSecrets(String(endpoint.url)), ok: !findings.isBad, findings: findings.all })}\n`,
    )
  await Promise.all(lines)
  if (!reached) throw new Ending('notConnected', 'MQTT was not reached')
  if (negotiated === undefined)
    throw new Ending(
      findings.isRefused ? 'refused' : 'notConnected',
      'neither MQTT 5.0 nor 3.1.1 was accepted',
    )
  if (findings.isBad) throw new Ending('refused', 'the broker differs; see above')
}

function withoutSecrets(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  url.search = ''
  return url.href
}

const widest = 'try: Maximum Packet Size of the client'.length

function lineOf({ check, verdict, seen, meaning }: Finding, colours: Colours): string {
  const colour: Readonly<Record<Verdict, (text: string) => string>> = {
    ok: colours.green,
    differs: colours.red,
    failed: colours.red,
    'not offered': colours.dim,
    note: colours.yellow,
  }
  const word = colour[verdict](verdict.padEnd('not offered'.length))
  const indent = ' '.repeat(widest + 15)
  return `${check.padEnd(widest)}  ${word}  ${seen}${meaning === undefined ? '' : `\n${indent}${colours.dim(meaning)}`}\n`
}
