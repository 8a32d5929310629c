/**
 * The arguments of the demo, checked. Throws a `UsageError` for what it does not understand, with a message for the person who typed it.
 */
import { parseArgs } from 'node:util'

/** What `--help` prints. */
export const usage = `Usage: npm start -- [options]

Simulated devices publish telemetry at QoS 0, 1 and 2; one subscriber checks that everything arrives, once. A dashboard shows it in the browser.

  --devices N          how many devices, 1 to 1,000 (default 20)
  --rate N             messages per second of each device, 0.1 to 10,000 (default 50)
  --duration N         stop after N seconds (default: run until Ctrl-C)
  --inject-loss N      lose every Nth message of each QoS on the way, to see the check fail
  --inject-repeat N    repeat every Nth message of each QoS on the way, to see the check fail
  --port N             where the dashboard is served (default 8080, or the next one that is free)
  --no-dashboard       do not serve it
  --help               show this

It starts a broker of its own. MQTT_URL=mqtt://host:1883 (or mqtts:, ws:, wss:) makes it use that one.
Exit code: 0 everything arrived, 1 something was lost or came twice, 2 wrong arguments.`

/** The arguments cannot be used. */
export class UsageError extends Error {}

/** Each number: default, least, most, and whether it is a whole one. */
const numbers = {
  devices: [20, 1, 1000, true],
  rate: [50, 0.1, 10_000, false],
  duration: [undefined, 0.1, 1_000_000, false],
  port: [8080, 1, 65_535, true],
  'inject-loss': [0, 1, 1_000_000, true],
  'inject-repeat': [0, 1, 1_000_000, true],
}

function readNumber(name, text) {
  const [standard, least, most, whole] = numbers[name]
  if (text === undefined) return standard
  const value = Number(text)
  if (text.trim() !== '' && value >= least && value <= most && (!whole || Number.isInteger(value))) return value
  throw new UsageError(`--${name} takes a ${whole ? 'whole ' : ''}number from ${least} to ${most.toLocaleString('en')}, not '${text}'.`)
}

function parse(args) {
  const options = Object.fromEntries(Object.keys(numbers).map((name) => [name, { type: 'string' }]))
  try {
    return parseArgs({ args, options: { ...options, 'no-dashboard': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } }).values
  } catch (error) {
    // What follows the first sentence is about positional arguments, of which there are none.
    throw new UsageError(`${error.message.split('. ')[0].replace(/\.$/, '')}.`)
  }
}

/** Reads the command line and MQTT_URL. */
export function readArguments(args, environment) {
  const values = parse(args)
  const url = environment.MQTT_URL || undefined
  if (url !== undefined && !URL.canParse(url)) throw new UsageError('MQTT_URL is no URL; it should look like mqtt://127.0.0.1:1883.')
  return {
    help: values.help === true,
    url,
    devices: readNumber('devices', values.devices),
    rate: readNumber('rate', values.rate),
    seconds: readNumber('duration', values.duration),
    dashboard: values['no-dashboard'] !== true,
    port: readNumber('port', values.port),
    loseEvery: readNumber('inject-loss', values['inject-loss']),
    repeatEvery: readNumber('inject-repeat', values['inject-repeat']),
  }
}
