#!/usr/bin/env node
/**
 * The command `mqwire`. Uses the public API of the package only.
 *
 * Built into one file, `dist/cli.js`, with the packages that it needs.
 */
import { Command, CommanderError } from 'commander'
import { benchCommand } from './bench/command.js'
import { isPart, runPart } from './bench/threads.js'
import { brokerCommand } from './commands/broker.js'
import { clearCommand } from './commands/clear.js'
import { completionCommand } from './commands/completion.js'
import { profileCommand } from './commands/profile.js'
import { pubCommand } from './commands/pub.js'
import { recordCommand, replayCommand } from './commands/record.js'
import { requestCommand, respondCommand } from './commands/request.js'
import { subCommand } from './commands/sub.js'
import { endOf, exitCodes } from './common/ending.js'
import { applyProfile } from './common/profiles.js'
import { decodeCommand } from './decode/command.js'
import { doctorCommand } from './doctor/command.js'
import { simulateCommand } from './simulate/command.js'
import { watchCommand } from './watch/command.js'

/** The version of the package, put in by the build. */
declare const VERSION: string

const about = `
Every option can come from the environment: --client-id is MQWIRE_CLIENT_ID. Standard output is data, standard error is talk.

Exit codes:
  0    done
  1    the command line is wrong
  2    not connected
  3    refused by the broker
  4    the time was over before what was expected
  5    messages were lost
  130  interrupted

Examples:
  mqwire sub 'plant/#'
  mqwire pub plant/7/set on -q 1
  mqwire doctor mqtts://broker.example
`

/** Milliseconds for connections to close after a command is done. */
const patience = 1500

/** Commands that connect to no broker. */
const offline = ['broker', 'completion', 'decode', 'help', 'profile']

function program(signal: AbortSignal): Command {
  const made = new Command('mqwire')
    .description('MQTT 5.0 and 3.1.1 at the command line')
    .version(VERSION, '-V, --version')
    .addHelpText('after', about)
    .helpCommand(true)
  for (const define of [
    subCommand,
    pubCommand,
    requestCommand,
    respondCommand,
    clearCommand,
    recordCommand,
    replayCommand,
    brokerCommand,
    doctorCommand,
    decodeCommand,
    benchCommand,
    simulateCommand,
    watchCommand,
  ])
    made.addCommand(define(signal))
  made.addCommand(profileCommand())
  made.addCommand(completionCommand(made))
  for (const command of [made, ...made.commands].flatMap((each) => [each, ...each.commands]))
    command
      .exitOverride()
      .configureHelp({ sortSubcommands: false })
      .showHelpAfterError('(--help shows what there is)')
  return made
}

async function main(): Promise<void> {
  const interrupt = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      // The second time, nothing is waited for.
      if (interrupt.signal.aborted) process.exit(exitCodes.interrupted)
      interrupt.abort()
    })
  process.stdout.on('error', (error) => process.exit(codeOf(error)))
  // Data goes on also where standard error is full or closed.
  process.stderr.on('error', () => undefined)
  process.removeAllListeners('warning')
  process.on('warning', ({ message }) => process.stderr.write(`warning: ${message}\n`))
  process.on('uncaughtException', (thrown) => process.exit(codeOf(thrown)))
  try {
    const [, , name = '', ...args] = process.argv
    // Before the options read the environment.
    const isAsking = args.some((each) => ['-h', '--help', '--list'].includes(each))
    if (name !== '' && !name.startsWith('-') && !offline.includes(name) && !isAsking)
      applyProfile(args, process.env)
    await program(interrupt.signal).parseAsync()
    process.exitCode = interrupt.signal.aborted ? exitCodes.interrupted : exitCodes.done
  } catch (thrown) {
    process.exitCode = interrupt.signal.aborted ? exitCodes.interrupted : codeOf(thrown)
  }
  if (interrupt.signal.aborted) process.exit()
  setTimeout(() => process.exit(), patience).unref()
}

// Commander has printed what is wrong itself.
function codeOf(thrown: unknown): number {
  if (thrown instanceof CommanderError)
    return thrown.exitCode === 0 ? exitCodes.done : exitCodes.usage
  const { end, text } = endOf(thrown)
  if (end !== 'done') process.stderr.write(`mqwire: ${text}\n`)
  return exitCodes[end]
}

if (isPart) await runPart()
else await main()
