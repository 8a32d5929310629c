/**
 * Inputs to begin with: valid sessions for each target, and those of `seeds.txt`.
 *
 * Each line of the file has a target and inputs in hexadecimal; lines that begin with # say what the ones behind them are for.
 */
import {
  acknowledge,
  answer,
  auth,
  connack,
  connect,
  disconnect,
  fromHex,
  given,
  join,
  pingreq,
  pingresp,
  publish,
  type Speaker,
  subscribe,
  unsubscribe,
} from './build.js'

/** One input of the file. */
export interface Seed {
  readonly target: string
  readonly bytes: Uint8Array
}

/** The inputs of a file's text. */
export function readSeeds(text: string): Seed[] {
  return text.split('\n').flatMap((line) => {
    const [target = '', ...inputs] = line.trim().split(/\s+/)
    return target.startsWith('#')
      ? []
      : inputs.map((digits) => ({ target, bytes: fromHex(digits) }))
  })
}

/** Inputs of a target as lines of the file, each of 100 columns unless one input is longer. */
export function packed(target: string, inputs: readonly string[]): string {
  const lines: string[] = []
  for (const digits of inputs) {
    const last = lines.at(-1) ?? ''
    if (last === '' || last.length + digits.length >= 100) lines.push(`${target} ${digits}`)
    else lines[lines.length - 1] = `${last} ${digits}`
  }
  return lines.map((line) => `${line}\n`).join('')
}

const five: Speaker = { version: 5 }
const four: Speaker = { version: 4 }

function serverSession(speaker: Speaker): Uint8Array[] {
  const message = given(
    [1, 1],
    [2, 9],
    [3, 'text'],
    [8, 'r'],
    [9, 'c'],
    [11, 1],
    [35, 1],
    [38, 'k', 'v'],
  )
  return [
    connack(speaker, 0, 0, given([33, 3], [34, 2], [18, 'given'], [38, 'k', 'v'])),
    publish(speaker, 'a/b', 'hi', { pairs: message }),
    publish(speaker, 'ü', '', { qos: 1, id: 1, retain: true }),
    publish(speaker, 't', 'x', { qos: 2, id: 2 }),
    acknowledge(speaker, 6, 2),
    publish(speaker, 't', 'x', { qos: 2, id: 3, dup: true, pairs: given([11, 1], [11, 2]) }),
    acknowledge(speaker, 4, 1, 0x10, [[31, 'nobody']]),
    acknowledge(speaker, 5, 2),
    acknowledge(speaker, 7, 2, 0x92),
    answer(speaker, 9, 3, [0, 1, 0x80], [[31, 'some']]),
    answer(speaker, 11, 4, [0, 0x11]),
    pingresp,
  ]
}

function clientSession(speaker: Speaker): Uint8Array[] {
  const limits = given([17, 9], [33, 3], [39, 99], [34, 2], [25, 1], [23, 0], [38, 'k', 'v'])
  const willProperties = speaker.version === 5 ? [2, 24, 0] : []
  const rest = join(0, 1, 119, 0, 1, 120, 0, 1, 117, 0, 1, 112)
  return [
    connect(speaker, 'c', 0xce, 30, limits, willProperties, rest),
    subscribe(speaker, 3, Object.entries({ 'a/#': 1, '$share/g/+': 2 }), [[11, 7]]),
    publish(speaker, 'a', 'p', { qos: 1, id: 1, pairs: [[35, 1]] }),
    publish(speaker, 'b', 'p', { qos: 2, id: 2 }),
    acknowledge(speaker, 6, 2),
    unsubscribe(speaker, 4, ['a/#', 'b']),
    pingreq,
    disconnect(speaker, 4, given([17, 0], [31, 'bye'])),
  ]
}

function wireSeeds(): Uint8Array[] {
  const ends = [
    disconnect(five, 0x9c, given([28, 'other'], [31, 'why'])),
    auth(0x18, given([21, 'm'], [22, 'data'], [31, 'why'])),
  ]
  return [
    join(0, 1, ...serverSession(five), ...ends),
    join(1, 1, ...serverSession(four)),
    join(2, 1, ...clientSession(five), auth(0x19, [[21, 'm']])),
    join(3, 1, ...clientSession(four)),
    join(2, 2, connect(five, '', 0, 0)),
    join(0, 3, publish(five, 'long', new Uint8Array(1900))),
    ...[...serverSession(five), ...ends].map((packet) => join(0, 0, packet)),
    ...clientSession(five).map((packet) => join(2, 0, packet)),
  ]
}

function sessionSeeds(): Uint8Array[] {
  const streams = serverSession(five).slice(1)
  const old = serverSession(four).slice(1)
  return [
    join([0, 3, 0x55, 0, 0, 1], ...streams),
    join([1, 3, 0x55, 0, 0, 1], ...old),
    join([0x08, 1, 0x3f, 0x42, 3, 1], ...streams, ...streams),
    join([0xc2, 2, 0x1a, 0x81, 0x0b, 1], ...streams, ...streams, ...streams),
    join([0x20, 3, 0x05, 0, 0, 1], ...serverSession(five), disconnect(five, 0x8b)),
    join(
      [0x24, 3, 0, 0, 0, 1],
      auth(0x18, [[21, 'm']]),
      connack(five, 0, 0, [[21, 'm']]),
      auth(0x18, [[21, 'm']]),
      auth(0, [[21, 'm']]),
    ),
    join(
      [0x10, 3, 0, 0, 0, 1],
      ...[1, 2, 3, 4].map((id) => publish(five, 't', 'x', { qos: 1 + (id & 1), id })),
    ),
    join(
      [0x18, 0x30, 0, 0, 0, 7],
      publish(five, 't', 'x', { pairs: [[35, 1]] }),
      publish(five, '', 'y', { pairs: [[35, 1]] }),
    ),
  ]
}

/** Valid sessions for a target. */
export function builtSeeds(target: string): Uint8Array[] {
  return target === 'wire' ? wireSeeds() : sessionSeeds()
}
