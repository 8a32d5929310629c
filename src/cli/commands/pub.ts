/**
 * `mqwire pub`: publishes messages.
 */
import { createInterface } from 'node:readline'
import { addAbortSignal } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { Command } from 'commander'
import { type Client, type PublishOptions, printable, type QoS, type Receipt } from 'mqwire'
import {
  type ConnectionValues,
  finite,
  option,
  withClient,
  withConnection,
} from '../common/connection.js'
import { misuse } from '../common/ending.js'
import { type MessageValues, propertiesOf, withProperties } from '../common/properties.js'
import { Sending } from '../common/sending.js'
import { ProgressLine, say } from '../common/terminal.js'
import { file, positive, qos, topic, whole } from '../common/values.js'

interface PubValues extends ConnectionValues, MessageValues {
  readonly qos: QoS
  readonly retain?: boolean
  readonly file?: Uint8Array
  readonly lines?: boolean
  readonly json?: boolean
  readonly rate?: number
  readonly repeat?: number
}

const examples = `
Without PAYLOAD, it is standard input as a whole.

Examples:
  mqwire pub lamp/1/set on                           one message, written to the broker
  mqwire pub -q 1 -r config/lamp/1 '{"on":true}'     acknowledged, and retained
  mqwire pub firmware/7 --file image.bin -q 1        the bytes of a file
  journalctl -f | mqwire pub --lines logs/host       a message for each line
  mqwire pub beat tick --repeat 60 --rate 1          one a second, for a minute
`

/** Defines the command. */
export function pubCommand(signal: AbortSignal): Command {
  const command = new Command('pub')
    .description('publish messages')
    .argument('<topic>', 'topic', topic)
    .argument('[payload]', "payload; '' is an empty one")
    .addOption(option('-q, --qos <qos>', 'QoS', qos, 0))
    .addOption(option('-r, --retain', 'the broker keeps it for later subscribers'))
    .addOption(option('-f, --file <file>', 'the payload is this file', file))
    .addOption(option('--lines', 'a message for each line of standard input'))
    .addOption(option('--json', 'check that payloads are JSON, and say so in the content type'))
    .addOption(option('--rate <number>', 'messages a second', positive))
    .addOption(
      option('--repeat <number>', 'publish it so often', whole(1, Number.MAX_SAFE_INTEGER)),
    )
  return withConnection(withProperties(command))
    .addHelpText('after', examples)
    .action((topic: string, payload: string | undefined, values: PubValues) => {
      check(payload, values)
      const work = (client: Client): Promise<void> =>
        publish(client, topic, payload, values, signal)
      return withClient(values, signal, work, finite(values))
    })
}

function check(payload: string | undefined, { file: bytes, lines, repeat }: PubValues): void {
  const sources = [payload !== undefined, bytes !== undefined, lines === true]
  if (sources.filter(Boolean).length > 1)
    throw misuse('PAYLOAD, --file and --lines exclude each other')
  if (lines && repeat !== undefined) throw misuse('--lines and --repeat exclude each other')
  if (!sources.includes(true) && isatty(0)) throw misuse("a payload is missing; '' is an empty one")
}

async function publish(
  client: Client,
  topic: string,
  payload: string | undefined,
  values: PubValues,
  signal: AbortSignal,
): Promise<void> {
  const { rate, repeat = 1, lines } = values
  const isFive = client.negotiated?.protocolVersion === 5
  const options: PublishOptions = {
    qos: values.qos,
    retain: values.retain === true,
    // MQTT 3.1.1 has no properties; the check of the JSON holds all the same.
    ...propertiesOf(values, isFive && values.json ? 'application/json' : undefined),
  }
  const sending = new Sending(client, signal)
  const progress = new ProgressLine()
  const start = performance.now()
  let count = 0
  for await (const each of payloads(payload ?? values.file, lines === true, repeat, signal)) {
    if (values.json) checkJson(each, lines ? count + 1 : undefined)
    if (rate !== undefined) await until(start + (count * 1000) / rate, signal)
    signal.throwIfAborted()
    await sending.send(topic, each, options)
    count += 1
    progress.show(() => `${count} published, ${sending.acknowledged} acknowledged`)
  }
  await sending.done()
  progress.clear()
  if (count > 1) say(`${count} messages published to ${printable(topic)}`)
  else sayReceipt(sending.last)
}

// The topic may be mistyped.
function sayReceipt(receipt: Receipt | undefined): void {
  if (receipt?.reasonCode === 0x10) say('the broker has no subscriber for this topic')
}

async function* payloads(
  given: string | Uint8Array | undefined,
  lines: boolean,
  repeat: number,
  signal: AbortSignal,
): AsyncGenerator<string | Uint8Array> {
  if (lines) {
    yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY, signal })
    return
  }
  const payload = given ?? (await standardInput(signal))
  for (let left = repeat; left > 0; left--) yield payload
}

async function standardInput(signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of addAbortSignal(signal, process.stdin)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function checkJson(payload: string | Uint8Array, line: number | undefined): void {
  try {
    JSON.parse(typeof payload === 'string' ? payload : Buffer.from(payload).toString())
  } catch (error) {
    throw misuse(
      `${line === undefined ? 'the payload' : `line ${line}`} is not JSON: ${(error as Error).message}`,
    )
  }
}

async function until(time: number, signal: AbortSignal): Promise<void> {
  const wait = time - performance.now()
  if (wait > 1) await sleep(wait, undefined, { signal })
}
