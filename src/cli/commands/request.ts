/**
 * `mqwire request` and `mqwire respond`: questions and answers over MQTT 5.0.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Command } from 'commander'
import { type Client, type Message, MqttError, type QoS } from 'mqwire'
import { type ConnectionValues, option, withClient, withConnection } from '../common/connection.js'
import { assertGranted, Ending, misuse } from '../common/ending.js'
import { formatterOf } from '../common/format.js'
import { Limits, type LimitValues, withLimits } from '../common/limits.js'
import { type MessageValues, propertiesOf, withProperties } from '../common/properties.js'
import { coloursOf, say, write } from '../common/terminal.js'
import { duration, file, filter, qos, topic, whole } from '../common/values.js'

interface RequestValues extends ConnectionValues, MessageValues {
  readonly qos: QoS
  readonly file?: Uint8Array
  readonly timeout: number
  readonly json?: boolean
}

const requestExamples = `
Prints the payload of the answer. Exit code 4 without an answer in time, 3 when the answer is an error.

Examples:
  mqwire request math/add '{"a":1,"b":2}' --timeout 5s
  mqwire request --json meter/7/read ''              the answer with its properties, as a line of JSON
`

/** Defines `request`. */
export function requestCommand(signal: AbortSignal): Command {
  const command = new Command('request')
    .description('ask, and print the answer')
    .argument('<topic>', 'topic', topic)
    .argument('[payload]', "payload; '' is an empty one")
    .addOption(option('-q, --qos <qos>', 'QoS', qos, 0))
    .addOption(option('-f, --file <file>', 'the payload is this file', file))
    .addOption(option('--timeout <time>', 'time for everything (default: 30s)', duration, 30_000))
    .addOption(option('--json', 'print the answer as a line of JSON'))
  return withConnection(withProperties(command, true))
    .addHelpText('after', requestExamples)
    .action((topic: string, given: string | undefined, values: RequestValues) => {
      const payload = given ?? values.file
      if (payload === undefined) throw misuse("a payload is missing; '' is an empty one")
      return withClient(values, signal, async (client) => {
        const { timeout } = values
        const answer = await client.request(topic, payload, {
          qos: values.qos,
          timeout,
          signal,
          ...propertiesOf(values),
        })
        const colours = coloursOf(process.stdout)
        await write(
          formatterOf(values.json ? { json: true } : { raw: true }, colours)(answer, new Date()),
        )
        if (!values.json && process.stdout.isTTY) await write('\n')
      })
    })
}

interface RespondValues extends ConnectionValues, LimitValues {
  readonly qos: QoS
  readonly exec?: string
  readonly reply?: string
  readonly timeout: number
  readonly concurrency: number
}

const respondExamples = `
The payload of a request is the standard input of the program, its standard output is the answer. No shell is used.
MQWIRE_REQUEST_TOPIC and MQWIRE_REQUEST_CONTENT_TYPE are in its environment. When it fails, the answer is an error.

Examples:
  mqwire respond math/add --exec jq -- -c '.a + .b'
  mqwire respond 'meter/+/read' --reply 42
`

/** Defines `respond`. */
export function respondCommand(signal: AbortSignal): Command {
  const command = new Command('respond')
    .description('answer requests by a program')
    .argument('<filter>', 'topic filter', filter)
    .argument('[arguments...]', 'arguments of the program, behind --')
    .addOption(option('-q, --qos <qos>', 'highest QoS', qos, 1))
    .addOption(option('--exec <program>', 'program that answers'))
    .addOption(option('--reply <text>', 'answer with this text'))
    .addOption(option('--timeout <time>', 'time that the program may take', duration, 30_000))
    .addOption(option('--concurrency <number>', 'programs at a time', whole(1, 1000), 4))
  return withConnection(withLimits(command, false))
    .addHelpText('after', respondExamples)
    .action((filter: string, given: readonly string[], values: RespondValues) => {
      if ((values.exec === undefined) === (values.reply === undefined))
        throw misuse('give --exec or --reply')
      return withClient(values, signal, (client) => respond(client, filter, given, values, signal))
    })
}

async function respond(
  client: Client,
  filter: string,
  given: readonly string[],
  values: RespondValues,
  signal: AbortSignal,
): Promise<void> {
  const limits = new Limits(values, signal)
  const { exec, reply = '', timeout, concurrency } = values
  const answer = async (message: Message): Promise<string | Uint8Array> => {
    try {
      return exec === undefined
        ? reply
        : await run(exec, given, message, timeout, AbortSignal.any([signal, limits.late]))
    } finally {
      limits.received += 1
      if (limits.left <= 0) limits.end()
    }
  }
  try {
    const responding = client.respond(filter, answer, {
      qos: values.qos,
      concurrency,
      onError: 'reject',
      until: limits.signal,
    })
    const responder = await responding.catch((error: unknown) => {
      if (!limits.late.aborted) throw error
      throw new Ending('deadline', 'the broker did not answer the SUBSCRIBE in time')
    })
    assertGranted(responder.granted)
    say(`answering ${filter}`)
    await responder.done
  } finally {
    limits.stop()
  }
  limits.conclude()
}

/** The most that a program may answer. */
const mostOutput = 16 * 1024 * 1024

/** Milliseconds for the rest of an answer once its program has ended. */
const lastWords = 100

/** Runs a program with a payload as its standard input. */
function run(
  program: string,
  given: readonly string[],
  { topic, payload, properties }: Message,
  timeout: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, given, {
      env: {
        ...process.env,
        MQWIRE_REQUEST_TOPIC: topic,
        MQWIRE_REQUEST_CONTENT_TYPE: properties.contentType ?? '',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
      // A group of its own, so that what it has started ends with it. Windows has none.
      detached: process.platform !== 'win32',
    })
    const output: Uint8Array[] = []
    let size = 0
    const settle = (problem?: string): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      // What it has started may hold its output open.
      child.stdout.destroy()
      if (problem === undefined) return resolve(Buffer.concat(output))
      reject(new MqttError('ERR_REMOTE', problem, { reasonName: 'ERR_HANDLER_FAILED' }))
    }
    const kill = (problem: string): void => {
      settle(problem)
      endGroup(child)
    }
    const stop = (): void => kill('the responder has ended')
    const timer = setTimeout(() => kill(`no answer within ${timeout / 1000} s`), timeout)
    signal.addEventListener('abort', stop)
    child.stdout.on('data', (chunk: Uint8Array) => {
      size += chunk.length
      if (size > mostOutput) kill(`the answer has more than ${mostOutput / 1024 / 1024} MiB`)
      else output.push(chunk)
    })
    // A program that does not read its input has ended its side.
    child.stdin.on('error', () => undefined)
    child.stdin.end(payload)
    child.on('error', (error) => {
      // Its path is no business of the other side.
      say(error.message)
      settle('the program could not be started')
    })
    const problemOf = (code: number | null, killed: string | null): string | undefined => {
      if (code === 0) return undefined
      return killed === null ? `ended with ${code}` : `was ended by ${killed}`
    }
    child.on('exit', (...how) => setTimeout(() => settle(problemOf(...how)), lastWords))
    child.on('close', (...how) => settle(problemOf(...how)))
  })
}

/** Ends a program and what it has started. */
function endGroup(child: ChildProcess): void {
  try {
    process.kill(-(child.pid as number), 'SIGKILL')
  } catch {
    // The group is gone, or there are no groups here.
    child.kill('SIGKILL')
  }
}
