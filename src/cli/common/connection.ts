/**
 * The options of a connection, which all commands that dial share, and the connection itself.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import {
  type Client,
  type ClientOptions,
  connect,
  type EndpointOptions,
  exponential,
  printable,
  type QoS,
} from 'mqwire'
import { Ending, misuse } from './ending.js'
import { variableOf } from './profiles.js'
import { ask, beQuiet, say } from './terminal.js'
import { duration, file, header, pair, qos, whole } from './values.js'

/** What the options of a connection become. */
export interface ConnectionValues {
  readonly url: string
  readonly clientId?: string
  readonly protocol: '5' | '4' | 'auto'
  readonly username?: string
  readonly password?: string
  readonly passwordFile?: string
  readonly askPassword?: boolean
  readonly ca?: Uint8Array
  readonly cert?: Uint8Array
  readonly key?: Uint8Array
  readonly servername?: string
  readonly insecure?: string
  readonly header?: Readonly<Record<string, string>>
  readonly keepAlive?: number
  readonly connectTimeout?: number
  readonly sessionExpiry?: number
  readonly cleanStart: boolean
  readonly connectProperty?: readonly (readonly [string, string])[]
  readonly willTopic?: string
  readonly willPayload?: string
  readonly willQos?: QoS
  readonly willRetain?: boolean
  readonly retry: boolean
  readonly quiet?: boolean
  readonly verbose?: boolean
}

/** An option that the environment can give as well: `MQWIRE_` and its long name. */
export function option(
  flags: string,
  text: string,
  parse?: (text: string, before: never) => unknown,
  initial?: unknown,
): Option {
  const made = new Option(flags, text)
  if (parse !== undefined) made.argParser(parse as never)
  if (initial !== undefined) made.default(initial)
  const name = variableOf(made.name())
  // Of a switch, commander asks only whether the variable is there.
  const given = process.env[name]?.toLowerCase()
  const isSwitch = !made.required && !made.optional
  const off = given === '' || (isSwitch && ['0', 'false', 'no', 'off'].includes(given ?? '0'))
  return off ? made : made.env(name)
}

/** Adds the options of a connection, behind those of the command. */
export function withConnection(command: Command): Command {
  return command
    .optionsGroup('Connection:')
    .addOption(
      option(
        '-u, --url <url>',
        'broker: mqtt:, mqtts:, ws:, wss: or unix:',
        undefined,
        'mqtt://127.0.0.1:1883',
      ),
    )
    .addOption(option('--profile <name>', "options of this profile; '' uses none"))
    .addOption(option('--client-id <id>', 'client identifier (default: the broker assigns one)'))
    .addOption(
      option(
        '--protocol <version>',
        '5, 4 (3.1.1), or auto: 5, and 4 where 5 is refused',
        undefined,
        'auto',
      ).choices(['5', '4', 'auto']),
    )
    .addOption(option('--username <name>', 'user name'))
    .addOption(
      option(
        '--password <text>',
        'password; others on this machine can see it in the list of processes',
      ),
    )
    .addOption(option('--password-file <file>', 'file whose first line is the password'))
    .addOption(option('--ask-password', 'ask for the password on the terminal'))
    .addOption(option('--ca <file>', 'certificate authorities to trust, PEM', file))
    .addOption(option('--cert <file>', 'client certificate, PEM', file))
    .addOption(option('--key <file>', 'key of the client certificate, PEM', file))
    .addOption(
      option('--servername <name>', 'name that the certificate must have (default: the host)'),
    )
    .addOption(
      option('--insecure <reason>', 'do not verify the certificate; the reason is printed'),
    )
    .addOption(
      option(
        '--header <text>',
        "header of the WebSocket handshake, 'NAME: VALUE'; may repeat",
        header as never,
      ),
    )
    .addOption(
      option('--keep-alive <seconds>', 'seconds, 0 is off (default: 30)', whole(0, 65_535)),
    )
    .addOption(option('--connect-timeout <time>', 'time until CONNACK (default: 10s)', duration))
    .addOption(
      option(
        '--session-expiry <seconds>',
        'seconds that the broker keeps the session',
        whole(0, 0xffff_ffff),
      ),
    )
    .addOption(option('--no-clean-start', 'resume the session of this --client-id'))
    .addOption(
      option(
        '--connect-property <pair>',
        'user property of CONNECT, NAME=VALUE; may repeat',
        pair as never,
      ),
    )
    .addOption(option('--will-topic <topic>', 'topic of the will'))
    .addOption(option('--will-payload <text>', 'payload of the will'))
    .addOption(option('--will-qos <qos>', 'QoS of the will', qos))
    .addOption(option('--will-retain', 'the will is retained'))
    .addOption(option('--retry', 'wait for a broker that is not there yet', undefined, false))
    .addOption(option('--quiet', 'print nothing but data and errors'))
    .addOption(option('-v, --verbose', 'print what the connection does'))
}

/** The endpoint of these options. */
export function endpointOf(values: ConnectionValues): EndpointOptions {
  const { url, ca, cert, key, servername, insecure, header: headers } = values
  if ((cert === undefined) !== (key === undefined))
    throw misuse('--cert and --key belong together; both may be the same file')
  const tls = { ca, cert, key, servername, insecure }
  const secured = Object.values(tls).some((value) => value !== undefined)
  return {
    // A bare host is what people type.
    url: url.includes('://') || url.startsWith('unix:') ? url : `mqtt://${url}`,
    ...(secured && { tls: tls as never }),
    ...(headers !== undefined && { headers }),
  }
}

/** The options of the client, with the password read. @throws Ending */
export async function clientOptions(
  values: ConnectionValues,
  signal: AbortSignal,
): Promise<ClientOptions> {
  if (values.quiet) beQuiet()
  const { willTopic, willPayload, willQos, willRetain } = values
  if (willTopic === undefined && (willPayload ?? willQos ?? willRetain) !== undefined)
    throw misuse('a will needs --will-topic')
  const given = {
    clientId: values.clientId,
    username: values.username,
    password: await passwordOf(values, signal),
    keepAlive: values.keepAlive,
    connectTimeout: values.connectTimeout,
    sessionExpiryInterval: values.sessionExpiry,
    userProperties: values.connectProperty as never,
    will:
      willTopic === undefined
        ? undefined
        : { topic: willTopic, payload: willPayload, qos: willQos, retain: willRetain },
  }
  return {
    ...given,
    protocolVersion: values.protocol === 'auto' ? 'auto' : (Number(values.protocol) as 5 | 4),
    cleanStart: values.cleanStart,
    firstConnect: values.retry ? 'wait' : 'reject',
    ...(values.retry && {
      on: { connecterror: ({ error }) => say(`${error.message}; trying again`) },
    }),
    logger: loggerOf(values.verbose === true),
  }
}

async function passwordOf(
  values: ConnectionValues,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { password, passwordFile, askPassword } = values
  if (passwordFile !== undefined) return firstLine(readFileSync(passwordFile, 'utf8'))
  if (askPassword) return ask('Password: ', signal, true)
  if (password !== undefined && process.env['MQWIRE_PASSWORD'] !== password)
    say(
      'warning: --password is visible in the list of processes; --password-file or MQWIRE_PASSWORD is not',
    )
  return password
}

function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0] as string
}

// What fails for good is thrown as well, so warnings are for those who ask.
function loggerOf(verbose: boolean): NonNullable<ClientOptions['logger']> {
  const line = (text: string): void => say(text)
  return verbose ? { debug: line, info: line, warn: line, error: line } : { error: line }
}

/** Connects, and says when the connection comes and goes. */
export async function open(
  values: ConnectionValues,
  signal: AbortSignal,
  more: ClientOptions = {},
): Promise<Client> {
  const options = await clientOptions(values, signal)
  const client = await connect(endpointOf(values), { ...options, ...more, signal })
  client.on('disconnect', ({ error }) => {
    if (error !== undefined) say(`connection lost: ${error.message}; connecting again`)
  })
  client.on('connect', ({ endpoint }) => say(`connected again to ${printable(endpoint)}`))
  return client
}

/** @throws Ending when the connection was lost and has not come back */
export function assertConnected(client: Client, signal: AbortSignal): void {
  if (client.state !== 'connected' && !signal.aborted)
    throw new Ending('notConnected', 'the connection was lost, and has not come back')
}

/**
 * For commands that send and end: a lost connection is tried so often, which takes a quarter of
 * a minute at most. With `--retry`, for ever.
 */
export function finite({ retry }: ConnectionValues): ClientOptions {
  return retry ? {} : { reconnect: { maxAttempts: 5, backoff: exponential({ max: 4000 }) } }
}

/** Connects, within `--for` where there is one. @throws Ending when its time is over */
export async function inTime<T>(
  { for: time }: { readonly for?: number },
  signal: AbortSignal,
  dial: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (time === undefined) return dial(signal)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), time)
  try {
    const over = once(late.signal, 'abort').then(() => Promise.reject(late.signal.reason))
    return await Promise.race([dial(AbortSignal.any([signal, late.signal])), over])
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error
    throw new Ending('deadline', `not connected within ${time / 1000} s`)
  } finally {
    clearTimeout(timer)
  }
}

/** Runs a command on a connection, which is closed whatever happens. */
export async function withClient(
  values: ConnectionValues & { readonly for?: number },
  signal: AbortSignal,
  work: (client: Client) => Promise<void>,
  more?: ClientOptions,
): Promise<void> {
  const client = await inTime(values, signal, (either) => open(values, either, more))
  try {
    await work(client)
  } finally {
    await client.disconnect({ timeout: signal.aborted ? 1000 : 2000 }).catch(() => undefined)
  }
}
