/**
 * `mqwire record` and `mqwire replay`: messages to a file of JSON lines, and back with their timing.
 */
import { createReadStream, existsSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import type { Client, Message, QoS } from 'mqwire'
import { matches } from 'mqwire/wire'
import {
  assertConnected,
  type ConnectionValues,
  finite,
  option,
  withClient,
  withConnection,
} from '../common/connection.js'
import { misuse } from '../common/ending.js'
import { Limits, type LimitValues, roomy, withLimits } from '../common/limits.js'
import { parseRecord, recordOf } from '../common/records.js'
import { Sending } from '../common/sending.js'
import { ProgressLine, say, write } from '../common/terminal.js'
import { filter, filters, positive, qos, signedDuration, topic, whole } from '../common/values.js'

interface RecordValues extends ConnectionValues, LimitValues {
  readonly qos: QoS
  readonly append?: boolean
  readonly force?: boolean
}

const recordExamples = `
Each message is a line: {"time":"2026-01-02T03:04:05.678Z","topic":"a/b","qos":0,"retain":false,"payload":"text"}.
A payload that is not UTF-8 is in "base64" instead. Ctrl-C ends a recording; what came before is complete.

Examples:
  mqwire record 'plant/#' plant.jsonl --for 1h
  mqwire record 'plant/#' - | gzip > plant.jsonl.gz
`

/** Defines `record`. */
export function recordCommand(signal: AbortSignal): Command {
  const command = new Command('record')
    .description('write messages to a file')
    .argument('<filter>', 'topic filter', filter)
    .argument('<file>', 'file, - is standard output')
    .addOption(option('-q, --qos <qos>', 'highest QoS', qos, 2))
    .addOption(option('--append', 'add to a file that exists'))
    .addOption(option('--force', 'write over a file that exists'))
  return withConnection(withLimits(command))
    .addHelpText('after', recordExamples)
    .action(async (filter: string, file: string, values: RecordValues) => {
      if (file !== '-' && !values.append && !values.force && existsSync(file))
        throw misuse(`${file} exists; --append adds to it, --force writes over it`)
      const work = (client: Client): Promise<void> => record(client, filter, file, values, signal)
      await withClient(values, signal, work, roomy.client)
    })
}

async function outputTo(
  file: string,
  { append, force }: RecordValues,
): Promise<NodeJS.WritableStream & Writable> {
  if (file === '-') return process.stdout
  const handle = await openFile(file, append ? 'a' : force ? 'w' : 'wx')
  return handle.createWriteStream({ highWaterMark: 1024 * 1024 })
}

function ended(output: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    output.once('error', reject)
    output.end(() => resolve())
    if (output.errored !== null) reject(output.errored)
  })
}

async function record(
  client: Client,
  filter: string,
  file: string,
  values: RecordValues,
  signal: AbortSignal,
): Promise<void> {
  const limits = new Limits(values, signal)
  const progress = new ProgressLine()
  try {
    const subscription = await limits.subscribe(client, filter, values.qos)
    // Not before the grant, so that a refusal leaves no empty file, and the old one as it is.
    const output = await outputTo(file, values)
    // It fails the write that met it.
    output.on('error', () => undefined)
    say(`recording ${filter}`)
    const keep = async (batch: readonly Message[]): Promise<void> => {
      const time = new Date()
      const lines = batch.map((message) => `${JSON.stringify(recordOf(message, time))}\n`)
      await write(lines.join(''), output, signal)
      limits.received += batch.length
      progress.show(() => `${limits.received} recorded`)
    }
    try {
      await limits.read(subscription, keep, 'the file')
      assertConnected(client, signal)
    } finally {
      progress.clear()
      say(counted(limits.received, 'recorded'))
      if (output !== process.stdout) await ended(output)
    }
  } finally {
    limits.stop()
  }
  limits.conclude()
}

interface ReplayValues extends ConnectionValues {
  readonly speed: number
  readonly topics?: readonly string[]
  readonly prefix?: string
  readonly shift?: number
  readonly loop?: number | true
  readonly qos?: QoS
  readonly retain: boolean
  readonly properties: boolean
}

const replayExamples = `
Messages leave in their order, each when it is due. Blank lines are left out.

Examples:
  mqwire replay plant.jsonl
  mqwire replay plant.jsonl --speed 60               an hour in a minute
  mqwire replay plant.jsonl --speed max --topics 'plant/+/alarm' --prefix test/
  mqwire replay plant.jsonl --shift 10m --loop       without the first ten minutes, again and again
`

/** A factor, or Infinity for `max`. */
function speedOf(text: string): number {
  return text === 'max' ? Number.POSITIVE_INFINITY : positive(text)
}

/** Defines `replay`. */
export function replayCommand(signal: AbortSignal): Command {
  const command = new Command('replay')
    .description('publish a recording')
    .argument('<file>', 'file of record or sub --json; - is standard input')
    .addOption(option('--speed <factor>', 'so many times as fast, or max', speedOf, 1))
    .addOption(option('--topics <filter>', 'only these topics; may repeat', filters as never))
    .addOption(option('--prefix <text>', 'put before each topic', topic))
    .addOption(
      option(
        '--shift <time>',
        'leave out the beginning; with a minus sign, wait before it',
        signedDuration,
      ),
    )
    .addOption(
      option(
        '--loop [number]',
        'repeat it for ever, or so often',
        whole(1, Number.MAX_SAFE_INTEGER),
      ),
    )
    .addOption(option('-q, --qos <qos>', 'QoS (default: as recorded)', qos))
    .addOption(option('--no-retain', 'retain nothing'))
    .addOption(
      option('--no-properties', 'leave out the properties, which MQTT 3.1.1 does not have'),
    )
  return withConnection(command)
    .addHelpText('after', replayExamples)
    .action((file: string, values: ReplayValues) => {
      const { loop } = values
      if (file === '-' && loop !== undefined)
        throw misuse('standard input can be read once: no --loop')
      const work = (client: Client): Promise<void> => replay(client, file, values, signal)
      return withClient(values, signal, work, finite(values))
    })
}

async function replay(
  client: Client,
  file: string,
  values: ReplayValues,
  signal: AbortSignal,
): Promise<void> {
  const { loop = 1 } = values
  const sending = new Sending(client, signal)
  const progress = new ProgressLine()
  const isFive = client.negotiated?.protocolVersion === 5
  let count = 0
  try {
    for (let left = loop === true ? Number.POSITIVE_INFINITY : loop; left > 0; left--) {
      const before = count
      for await (const _ of play(file, values, isFive, sending, signal)) {
        count += 1
        progress.show(() => `${count} published, ${sending.acknowledged} acknowledged`)
      }
      if (count === before) throw misuse(`${file} has no message to publish`)
    }
    await sending.done()
  } finally {
    progress.clear()
    if (count > 0) say(counted(sending.acknowledged, 'published'))
  }
}

function counted(count: number, what: string): string {
  return `${count} ${count === 1 ? 'message' : 'messages'} ${what}`
}

/** Publishes each message of the file when it is due. */
async function* play(
  file: string,
  { speed, topics, prefix = '', shift = 0, qos: given, retain, properties }: ReplayValues,
  isFive: boolean,
  sending: Sending,
  signal: AbortSignal,
): AsyncGenerator<void> {
  const input = file === '-' ? process.stdin : createReadStream(file)
  const start = performance.now()
  let first: number | undefined
  let number = 0
  // An error of the file is one of the loop below.
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY, signal })
  const failed = new Promise<never>((_, reject) => input.once('error', reject))
  failed.catch(() => lines.close())
  for await (const line of lines) {
    number += 1
    if (line.trim() === '') continue
    const { time, topic, payload, options } = recordOn(line, file, number)
    first ??= time
    const offset = time - first - shift
    if (offset < 0 && shift > 0) continue
    if (topics !== undefined && !topics.some((filter) => matches(filter, topic))) continue
    if (properties && !isFive && options.properties !== undefined) {
      // Those before it have left.
      await sending.done()
      throw misuse(
        `${file}:${number}: MQTT 3.1.1 has no properties; --no-properties leaves them out`,
      )
    }
    const wait = start + offset / speed - performance.now()
    if (wait > 1) await sleep(wait, undefined, { signal })
    signal.throwIfAborted()
    await sending.send(`${prefix}${topic}`, payload, {
      ...options,
      ...(given !== undefined && { qos: given }),
      ...(!retain && { retain: false }),
      ...(!properties && { properties: {} }),
    })
    yield
  }
  await Promise.race([failed, Promise.resolve()])
}

function recordOn(line: string, file: string, number: number): ReturnType<typeof parseRecord> {
  try {
    return parseRecord(line)
  } catch (error) {
    throw misuse(`${file}:${number}: ${(error as Error).message}`)
  }
}
