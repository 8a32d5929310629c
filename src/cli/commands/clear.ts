/**
 * `mqwire clear`: removes retained messages.
 */
import { isatty } from 'node:tty'
import { Command } from 'commander'
import type { Client } from 'mqwire'
import { type ConnectionValues, option, withClient, withConnection } from '../common/connection.js'
import { Ending } from '../common/ending.js'
import { readable } from '../common/format.js'
import { retainedIn } from '../common/limits.js'
import { Sending } from '../common/sending.js'
import { ask, coloursOf, say, write } from '../common/terminal.js'
import { duration, filters } from '../common/values.js'

interface ClearValues extends ConnectionValues {
  readonly yes?: boolean
  readonly quietFor: number
}

const examples = `
Prints what is retained first, and asks. Without a terminal, nothing is removed unless --yes is given.

Examples:
  mqwire clear 'config/lamp/#'
  mqwire clear --yes 'test/#'
`

/** Defines the command. */
export function clearCommand(signal: AbortSignal): Command {
  const command = new Command('clear')
    .description('remove retained messages')
    .argument('<filters...>', 'topic filters', filters as never)
    .addOption(option('-y, --yes', 'do not ask'))
    .addOption(
      option(
        '--quiet-for <time>',
        'a silence after which all retained messages have come',
        duration,
        1000,
      ),
    )
  return withConnection(command)
    .addHelpText('after', examples)
    .action((filters: readonly string[], values: ClearValues) =>
      withClient(values, signal, (client) => clear(client, filters, values, signal)),
    )
}

async function clear(
  client: Client,
  filters: readonly string[],
  { yes, quietFor }: ClearValues,
  signal: AbortSignal,
): Promise<void> {
  const colours = coloursOf(process.stdout)
  const topics = new Set<string>()
  for await (const { topic, payload } of retainedIn(client, filters, { quiet: quietFor, signal })) {
    topics.add(topic)
    await write(`${colours.cyan(readable(Buffer.from(topic)))} ${readable(payload)}\n`)
  }
  if (topics.size === 0) return say('nothing is retained there')
  if (!yes && !(await isAgreed(topics.size, signal)))
    throw new Ending('usage', 'nothing was removed')
  // MQTT 3.1.1 brokers answer a refused publish in the same way, so what is left is looked at.
  const sending = new Sending(client, signal)
  const most = client.negotiated?.maximumQoS === 0 ? 0 : 1
  for (const topic of topics) await sending.send(topic, '', { qos: most, retain: true })
  await sending.done()
  let left = 0
  for await (const { topic } of retainedIn(client, filters, { quiet: quietFor, signal }))
    if (topics.has(topic)) left += 1
  if (left > 0) throw new Ending('refused', `${left} of ${topics.size} messages are still retained`)
  say(`${topics.size} removed`)
}

async function isAgreed(count: number, signal: AbortSignal): Promise<boolean> {
  if (!isatty(0)) {
    say('standard input is no terminal to ask on: --yes removes them')
    return false
  }
  const answer = await ask(
    `Remove ${count === 1 ? 'this message' : `these ${count} messages`}? [y/N] `,
    signal,
  )
  return /^y(es)?$/i.test(answer.trim())
}
