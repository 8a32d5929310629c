/**
 * `mqwire broker`: the broker of `mqwire/testing` over TCP and WebSocket, for development.
 */
import { once } from 'node:events'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { printable } from 'mqwire'
import type { MemoryBroker, MemoryBrokerOptions } from 'mqwire/testing'
import { option } from '../common/connection.js'
import { misuse } from '../common/ending.js'
import { moduleAt } from '../common/module.js'
import { parseRecord, recordOf } from '../common/records.js'
import { beQuiet, say, write } from '../common/terminal.js'
import { file, whole } from '../common/values.js'

interface BrokerValues {
  readonly port: number
  readonly ws?: number
  readonly wsPath: string
  readonly host: string
  readonly unix?: string
  readonly cert?: Uint8Array
  readonly key?: Uint8Array
  readonly persist?: string
  readonly hooks?: string
  readonly quiet?: boolean
}

const examples = `
For development and tests, not for production: it keeps everything in memory, and every client may do everything
unless hooks say otherwise. It queues up to 100,000 messages for a client that is away.

Examples:
  mqwire broker                                  mqtt://127.0.0.1:1883
  mqwire broker --port 0 --ws 0                  free ports, which are printed on standard output
  mqwire broker --persist retained.jsonl         retained messages outlive it
  mqwire broker --hooks broker.js                faults, limits and access: its default export is the options of
                                                 MemoryBroker, for example
                                                 export default { maximumQoS: 1, authenticate: ({ username }) => username === 'me' }
`

/** Defines the command. */
export function brokerCommand(signal: AbortSignal): Command {
  return new Command('broker')
    .description('run a broker in memory, for development')
    .addOption(
      option('-p, --port <number>', 'port for TCP, 0 is a free one', whole(0, 65_535), 1883),
    )
    .addOption(option('--ws <number>', 'port for WebSocket, 0 is a free one', whole(0, 65_535)))
    .addOption(option('--ws-path <path>', 'path of the WebSocket', undefined, '/mqtt'))
    .addOption(
      option('--host <address>', 'address; 0.0.0.0 lets other machines in', undefined, '127.0.0.1'),
    )
    .addOption(option('--unix <path>', 'Unix domain socket as well'))
    .addOption(option('--cert <file>', 'certificate, PEM: uses TLS', file))
    .addOption(option('--key <file>', 'key of the certificate, PEM', file))
    .addOption(option('--persist <file>', 'keeps retained messages in this file of JSON lines'))
    .addOption(option('--hooks <file>', 'module whose default export is the options of the broker'))
    .addOption(option('--quiet', 'print nothing but addresses and errors'))
    .addHelpText('after', examples)
    .action((values: BrokerValues) => serve(values, signal))
}

async function serve(values: BrokerValues, signal: AbortSignal): Promise<void> {
  const { port, ws, wsPath, host, unix, cert, key, persist, hooks } = values
  if (values.quiet) beQuiet()
  if (!wsPath.startsWith('/')) throw misuse('--ws-path begins with /')
  if ((cert === undefined) !== (key === undefined)) throw misuse('--cert and --key belong together')
  const testing = await import('mqwire/testing')
  const broker = new testing.MemoryBroker({
    maxQueuedMessages: 100_000,
    ...(hooks === undefined ? {} : await optionsIn(hooks)),
  })
  const kept = persist === undefined ? undefined : new KeptMessages(broker, persist)
  await using listeners = await broker.serve({
    tcp: port,
    ...(ws !== undefined && { ws: { port: ws, path: wsPath } }),
    ...(unix !== undefined && { unix }),
    host,
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } as never }),
  })
  for (const url of listeners.urls) await write(`${url}\n`)
  say('for development, not for production; Ctrl-C ends it')
  broker.on('hookerror', ({ error }) => say(`hook: ${printable(String(error))}`))
  const saving = setInterval(() => kept?.save(), 1000)
  try {
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    clearInterval(saving)
    kept?.save()
    await broker.close()
  }
}

async function optionsIn(hooks: string): Promise<MemoryBrokerOptions> {
  const { default: options } = await moduleAt(hooks)
  if (typeof options !== 'object' || options === null)
    throw misuse(`${hooks} has no default export with options of MemoryBroker`)
  return options
}

/** The retained messages of a broker, in a file. */
class KeptMessages {
  readonly #broker: MemoryBroker
  readonly #file: string
  /** Why the file could not be written the last time. */
  #problem = ''
  readonly #times = new WeakMap<object, Date>()
  #isChanged = true

  /** Reads the file into the broker; it need not exist. */
  constructor(broker: MemoryBroker, file: string) {
    this.#broker = broker
    this.#file = file
    for (const [index, line] of linesOf(file).entries()) {
      if (line.trim() === '') continue
      try {
        const { topic, payload, options } = parseRecord(line)
        broker.publish({ ...(options as object), topic, payload, retain: true })
      } catch (error) {
        throw misuse(`${file}:${index + 1}: ${(error as Error).message}`)
      }
    }
    broker.on('publish', ({ message }) => {
      this.#isChanged ||= message.retain
    })
    // Shows at once whether the file can be written.
    this.#write()
  }

  /** Writes the file when a retained message was published; it is replaced in one step. */
  save(): void {
    try {
      this.#write()
      this.#problem = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#problem) say(`--persist: ${message}`)
      this.#problem = message
    }
  }

  #write(): void {
    if (!this.#isChanged) return
    writeFileSync(`${this.#file}.new`, this.#text())
    renameSync(`${this.#file}.new`, this.#file)
    this.#isChanged = false
  }

  #text(): string {
    const lines = [...this.#broker.retained.values()].map((message) => {
      const time = this.#times.get(message) ?? new Date()
      this.#times.set(message, time)
      return `${JSON.stringify(recordOf(message, time))}\n`
    })
    return lines.join('')
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
