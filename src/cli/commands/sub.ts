/**
 * `mqwire sub`: prints messages.
 */
import { Command } from 'commander'
import type { Client, Message, QoS, Subscription } from 'mqwire'
import { matches } from 'mqwire/wire'
import {
  assertConnected,
  type ConnectionValues,
  option,
  withClient,
  withConnection,
} from '../common/connection.js'
import { type Decode, decoderOf } from '../common/contract.js'
import { assertGranted } from '../common/ending.js'
import { type Formatter, formatCodes, formatterOf } from '../common/format.js'
import { Limits, type LimitValues, retainedIn, roomy, withLimits } from '../common/limits.js'
import { coloursOf, say, write } from '../common/terminal.js'
import { filters, qos } from '../common/values.js'

interface SubValues extends ConnectionValues, LimitValues {
  readonly qos: QoS
  readonly exclude?: readonly string[]
  readonly json?: boolean
  readonly raw?: boolean
  readonly format?: string
  readonly contract?: string
  readonly untilSubscribed?: boolean
  readonly retainedOnly?: boolean
  readonly live?: boolean
  readonly local: boolean
}

const codes = Object.entries(formatCodes)
  .map(([code, text]) => `  ${code}  ${text}`)
  .join('\n')

const examples = `
Examples:
  mqwire sub 'plant/#'                                 everything below plant, topic and text
  mqwire sub -n 1 --for 10s 'door/+/state'             one message, or exit code 4 after 10 seconds
  mqwire sub --json 'plant/#' | jq .topic              a line of JSON for each message
  mqwire sub --retained-only 'config/#'                what is retained, then the end
  mqwire sub --until-subscribed 'secret/#'             may I read this? 0 or 3
  mqwire sub --format '%I %t %p\\n' 'plant/#'           as mosquitto_sub -F

Codes of --format:
${codes}
`

/** Defines the command. */
export function subCommand(signal: AbortSignal): Command {
  const command = new Command('sub')
    .description('print messages')
    .argument('<filters...>', 'topic filters', filters as never)
    .addOption(option('-q, --qos <qos>', 'highest QoS', qos, 0))
    .addOption(option('--json', 'a line of JSON for each message'))
    .addOption(
      option('--raw', 'the payloads alone, byte by byte').conflicts(['json', 'format', 'contract']),
    )
    .addOption(
      option('-F, --format <text>', 'print by a format, see below').conflicts(['json', 'contract']),
    )
    .addOption(option('--exclude <filter>', 'leave out topics; may repeat', filters as never))
    .addOption(
      option('--contract <file>', 'module of channels (mqwire/typed) that decode the payloads'),
    )
    .addOption(option('--until-subscribed', 'end once the broker has granted the filters'))
    .addOption(option('--retained-only', 'print the retained messages and end'))
    .addOption(option('--live', 'leave out retained messages'))
    .addOption(option('--no-local', 'leave out messages of this client'))
  return withConnection(withLimits(command))
    .addHelpText('after', examples)
    .action(async (filters: readonly string[], values: SubValues) => {
      const output: Output = {
        format: formatterOf(values, coloursOf(process.stdout)),
        decode: values.contract === undefined ? undefined : await decoderOf(values.contract),
      }
      const work = (client: Client): Promise<void> =>
        subscribe(client, filters, values, output, signal)
      await withClient(values, signal, work, roomy.client)
    })
}

/** How messages are printed. */
interface Output {
  readonly format: Formatter
  readonly decode: Decode | undefined
}

async function subscribe(
  client: Client,
  filters: readonly string[],
  values: SubValues,
  { format, decode }: Output,
  signal: AbortSignal,
): Promise<void> {
  const { exclude = [], live, local } = values
  const limits = new Limits(values, signal)
  const isWanted = ({ topic, retain }: Message): boolean =>
    !(live && retain) && !exclude.some((filter) => matches(filter, topic))
  /** Writes those that are wanted. */
  const print = async (batch: readonly Message[]): Promise<void> => {
    const time = new Date()
    const pieces: (string | Uint8Array)[] = []
    for (const message of batch) {
      if (!isWanted(message)) continue
      pieces.push(format(message, time, await decode?.(message)))
      limits.received += 1
    }
    await write(joined(pieces), process.stdout, signal)
  }
  try {
    if (values.retainedOnly) await readRetained(client, filters, values, limits, print)
    else {
      const subscription = await limits.subscribe(client, filters, values.qos, {
        retainHandling: live ? 2 : 0,
        noLocal: !local,
      })
      assertGranted(subscription.granted)
      if (values.untilSubscribed) return sayGranted(subscription)
      await limits.read(subscription, print, 'standard output')
      assertConnected(client, signal)
    }
  } finally {
    limits.stop()
  }
  limits.conclude()
}

function sayGranted({ granted }: Subscription): void {
  for (const { filter, qos: highest } of granted) say(`${filter}: granted at QoS ${highest}`)
}

type Print = (batch: readonly Message[]) => Promise<void>

async function readRetained(
  client: Client,
  filters: readonly string[],
  { qos, quietFor = 1000 }: SubValues,
  limits: Limits,
  print: Print,
): Promise<void> {
  const { signal } = limits
  try {
    for await (const message of retainedIn(client, filters, { qos, quiet: quietFor, signal })) {
      await print([message])
      if (limits.left <= 0) return
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function joined(pieces: readonly (string | Uint8Array)[]): string | Uint8Array {
  return pieces.every((piece) => typeof piece === 'string')
    ? pieces.join('')
    : Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
}
