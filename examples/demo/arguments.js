/**
 * The arguments of the demo, checked. Throws a `UsageError` for what it does not understand, with a message for the person who typed it.
 */
import { helpOf, readArguments as read, UsageError } from '../arguments.js'

const list = {
  usage: 'npm start -- [options]',
  about:
    'Simulated devices publish telemetry at QoS 0, 1 and 2; one subscriber checks that everything arrives, once. A dashboard shows it in the browser.',
  options: {
    devices: {
      value: 'N',
      number: [1, 1000],
      whole: true,
      initial: 20,
      text: 'how many devices, 1 to 1,000',
    },
    rate: {
      value: 'N',
      number: [0.1, 10_000],
      initial: 50,
      text: 'messages per second of each device, 0.1 to 10,000',
    },
    duration: {
      value: 'N',
      number: [0.1, 1_000_000],
      text: 'stop after N seconds (default: run until Ctrl-C)',
    },
    'inject-loss': {
      value: 'N',
      number: [1, 1_000_000],
      whole: true,
      text: 'lose every Nth message of each QoS on the way, to see the check fail',
    },
    'inject-repeat': {
      value: 'N',
      number: [1, 1_000_000],
      whole: true,
      text: 'repeat every Nth message of each QoS on the way, to see the check fail',
    },
    port: {
      value: 'N',
      number: [1, 65_535],
      whole: true,
      initial: 8080,
      text: 'where the dashboard is served, or the next port that is free',
    },
    'no-dashboard': { text: 'do not serve it' },
  },
  notes: [
    'It starts a broker of its own. MQTT_URL=mqtt://host:1883 (or mqtts:, ws:, wss:) makes it use that one.',
    'Exit code: 0 everything arrived, 1 something was lost or came twice, 2 wrong arguments.',
  ],
}

export { UsageError }

/** What `--help` prints. */
export const usage = helpOf(list)

/** Reads the command line and MQTT_URL. */
export function readArguments(args, environment) {
  const { help, values } = read(list, args)
  if (help) return { help }
  const url = environment.MQTT_URL || undefined
  if (url !== undefined && !URL.canParse(url))
    throw new UsageError(
      'MQTT_URL is no URL; it should look like mqtt://127.0.0.1:1883; --help shows what there is.',
    )
  const { devices, rate, port } = values
  return {
    help,
    url,
    devices,
    rate,
    seconds: values.duration,
    dashboard: !values['no-dashboard'],
    port,
    loseEvery: values['inject-loss'] ?? 0,
    repeatEvery: values['inject-repeat'] ?? 0,
  }
}
