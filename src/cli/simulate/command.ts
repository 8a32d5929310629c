/**
 * `mqwire simulate`: devices from a description that publish like real ones.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import {
  type ConnectionValues,
  clientOptions,
  endpointOf,
  inTime,
  option,
  withConnection,
} from '../common/connection.js'
import { Ending, endOf, misuse } from '../common/ending.js'
import { recordOf } from '../common/records.js'
import { ProgressLine, say, write } from '../common/terminal.js'
import { duration, positive, topic, whole } from '../common/values.js'
import { type Description, mostDevices, parseDescription } from './description.js'
import { type DeviceMessage, devicesOf, type SimulatedDevice } from './device.js'
import { DeviceFleet } from './fleet.js'
import { type Row, rowsOfCsv } from './generators.js'
import { DescriptionError } from './reading.js'
import factory from './scenarios/factory.json' with { type: 'json' }
import home from './scenarios/home.json' with { type: 'json' }
import trucks from './scenarios/trucks.json' with { type: 'json' }

interface SimulateValues extends ConnectionValues {
  readonly devices?: number
  readonly for?: number
  readonly speed: number
  readonly prefix: string
  readonly seed: number
  readonly print?: boolean
  readonly list?: boolean
}

/** The descriptions that ship, by name. */
const scenarios: ReadonlyMap<string, unknown> = new Map(
  [trucks, factory, home].map((each) => [each.name, each]),
)

const examples = `
FILE is a description in JSON; docs/cli.md has its format. Each device is a client of its own, with the identifier of the device.
The same seed gives the same values. Without --for, it runs until Ctrl-C.

Examples:
  mqwire simulate --list
  mqwire simulate trucks --print                     what it would publish, as lines of JSON
  mqwire simulate factory --devices 500 --for 1m
  mqwire simulate my-devices.json --prefix test/ --speed 10
`

/** Defines the command. */
export function simulateCommand(signal: AbortSignal): Command {
  const command = new Command('simulate')
    .description('publish as many devices, from a description')
    .argument('[description]', 'file, or name of a scenario')
    .addOption(option('--devices <number>', 'scale to so many devices', whole(1, mostDevices)))
    .addOption(option('--for <time>', 'end after this time', duration))
    .addOption(option('--speed <factor>', 'so many times as fast', positive, 1))
    .addOption(option('--prefix <text>', 'put before topics and client identifiers', topic, ''))
    .addOption(option('--seed <number>', 'of the random values', whole(0, 0xffff_ffff), 1))
    .addOption(
      option('--print', 'connect to nothing; print the messages of --for (default: 5s)').conflicts(
        'speed',
      ),
    )
    .addOption(option('--list', 'list the scenarios'))
  return withConnection(command)
    .addHelpText('after', examples)
    .action(async (name: string | undefined, values: SimulateValues) => {
      if (values.list) return write(listing())
      if (name === undefined) throw misuse(`a description is missing; ${choice}`)
      const began = Date.now()
      const devices = devicesFrom(name, values, began)
      if (values.print) await print(devices, values.for ?? 5000, began, signal)
      else await simulate(devices, values, signal)
    })
}

const choice = `give a file, or one of ${[...scenarios.keys()].join(', ')}`

function listing(): string {
  const all = [...scenarios.values()].map((each) => parseDescription(each))
  return all.map(({ name, about }) => `${name.padEnd(10)}${about}\n`).join('')
}

function devicesFrom(name: string, values: SimulateValues, began: number): SimulatedDevice[] {
  const { seed, prefix, devices } = values
  try {
    return devicesOf(descriptionOf(name), { seed, prefix, began }, devices)
  } catch (error) {
    if (error instanceof DescriptionError) throw misuse(`${name}: ${error.message}`)
    throw error
  }
}

function descriptionOf(name: string): Description {
  const scenario = scenarios.get(name)
  if (scenario !== undefined) return parseDescription(scenario)
  if (!existsSync(name)) throw misuse(`there is no file and no scenario '${name}'; ${choice}`)
  const found = new Map<string, readonly Row[]>()
  return parseDescription(jsonOf(name), (file) => {
    const place = path.resolve(path.dirname(name), file)
    const rows = found.get(place) ?? rowsOfCsv(readFileSync(place, 'utf8'))
    found.set(place, rows)
    return rows
  })
}

function jsonOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw misuse(`${file} cannot be read as JSON: ${(error as Error).message}`)
  }
}

/** Simulated milliseconds whose messages are sorted and printed together. */
const slice = 100

async function print(
  devices: readonly SimulatedDevice[],
  until: number,
  began: number,
  signal: AbortSignal,
): Promise<void> {
  const first = devices.flatMap((device) => device.connected(0))
  await write(lines(first, began))
  for (let now = slice; now < until + slice && !signal.aborted; now += slice) {
    const found: DeviceMessage[] = []
    for (const device of devices)
      for (let next = device.poll(now); next !== undefined; next = device.poll(now)) {
        if (next.at <= until) found.push(next)
      }
    if (found.length === 0) continue
    const sorted = found.sort((one, other) => one.at - other.at)
    await write(lines(sorted, began), process.stdout, signal)
  }
}

function lines(messages: readonly DeviceMessage[], began: number): string {
  const records = messages.map(({ at, payload, contentType, ...message }) => {
    const properties = contentType === undefined ? {} : { contentType }
    const bytes = Buffer.from(payload)
    return recordOf({ ...message, payload: bytes, properties }, new Date(began + at))
  })
  return records.map((record) => `${JSON.stringify(record)}\n`).join('')
}

async function simulate(
  devices: readonly SimulatedDevice[],
  values: SimulateValues,
  signal: AbortSignal,
): Promise<void> {
  // Each device has an identifier and a will of its own.
  const { clientId: _id, will: _will, ...options } = await clientOptions(values, signal)
  const progress = new ProgressLine()
  const fleet = new DeviceFleet(devices, {
    endpoint: endpointOf(values),
    options,
    speed: values.speed,
    signal,
    onProgress: () => progress.show(() => summary(fleet, fleet.connected)),
  })
  let isRunning = false
  try {
    await inTime(values, signal, () => fleet.open())
    isRunning = true
    await fleet.run((values.for ?? Number.POSITIVE_INFINITY) * values.speed)
  } finally {
    await fleet.close()
    progress.clear()
    if (isRunning) say(summary(fleet, devices.length))
  }
  if (fleet.problem === undefined || signal.aborted) return
  const { end, text } = endOf(fleet.problem)
  throw new Ending(end, `${fleet.failures} publishes or connections failed, the first: ${text}`)
}

function summary(fleet: DeviceFleet, devices: number): string {
  const { published, commands, refused, heldBack } = fleet
  const rest = [
    ...(refused > 0 ? [`${refused} refused`] : []),
    ...(heldBack > 0 ? [`${heldBack} held back`] : []),
  ]
  return [
    `${devices} devices`,
    `${published} messages published`,
    `${commands} commands taken`,
    ...rest,
  ].join(', ')
}
