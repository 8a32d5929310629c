/**
 * Inputs to begin with: valid sessions for each target, and the lines of `seeds.txt`.
 *
 * The file has a line for each input, target and hexadecimal bytes; lines that begin with # say what the ones behind them are for.
 */
import {
  acknowledge,
  answer,
  auth,
  connack,
  connect,
  disconnect,
  fromHex,
  hex,
  join,
  pingreq,
  pingresp,
  publish,
  type Speaker,
  subscribe,
  unsubscribe,
} from './build.js'
import { clientStories } from './stories.js'

/** One line of the file. */
export interface Seed {
  readonly target: string
  readonly bytes: Uint8Array
}

/** The inputs of a file's text. */
export function readSeeds(text: string): Seed[] {
  return text.split('\n').flatMap((line) => {
    const [target, digits] = line.trim().split(/\s+/)
    return target === undefined || digits === undefined || target.startsWith('#') ? [] : [{ target, bytes: fromHex(digits) }]
  })
}

/** A line of the file. */
export function seedLine({ target, bytes }: Seed): string {
  return `${target} ${hex(bytes)}`
}

const five: Speaker = { version: 5 }
const four: Speaker = { version: 4 }

function serverSession(speaker: Speaker): Uint8Array[] {
  return [
    connack(speaker, 0, 0, [
      [33, 3],
      [34, 2],
      [18, 'given'],
      [38, 'k', 'v'],
    ]),
    publish(speaker, 'a/b', 'hi', {
      pairs: [
        [1, 1],
        [2, 9],
        [3, 'text'],
        [8, 'r'],
        [9, 'c'],
        [11, 1],
        [35, 1],
        [38, 'k', 'v'],
      ],
    }),
    publish(speaker, 'ü', '', { qos: 1, id: 1, retain: true }),
    publish(speaker, 't', 'x', { qos: 2, id: 2 }),
    acknowledge(speaker, 6, 2),
    publish(speaker, 't', 'x', {
      qos: 2,
      id: 3,
      dup: true,
      pairs: [
        [11, 1],
        [11, 2],
      ],
    }),
    acknowledge(speaker, 4, 1, 0x10, [[31, 'nobody']]),
    acknowledge(speaker, 5, 2),
    acknowledge(speaker, 7, 2, 0x92),
    answer(speaker, 9, 3, [0, 1, 0x80], [[31, 'some']]),
    answer(speaker, 11, 4, [0, 0x11]),
    pingresp,
  ]
}

function clientSession(speaker: Speaker): Uint8Array[] {
  return [
    connect(
      speaker,
      'c',
      0xce,
      30,
      [
        [17, 9],
        [33, 3],
        [39, 99],
        [34, 2],
        [25, 1],
        [23, 0],
        [38, 'k', 'v'],
      ],
      speaker.version === 5 ? [2, 24, 0] : [],
      join(0, 1, 119, 0, 1, 120, 0, 1, 117, 0, 1, 112),
    ),
    subscribe(
      speaker,
      3,
      [
        ['a/#', 1],
        ['$share/g/+', 2],
      ],
      [[11, 7]],
    ),
    publish(speaker, 'a', 'p', { qos: 1, id: 1, pairs: [[35, 1]] }),
    publish(speaker, 'b', 'p', { qos: 2, id: 2 }),
    acknowledge(speaker, 6, 2),
    unsubscribe(speaker, 4, ['a/#', 'b']),
    pingreq,
    disconnect(speaker, 4, [
      [17, 0],
      [31, 'bye'],
    ]),
  ]
}

function wireSeeds(): Uint8Array[] {
  const ends = [
    disconnect(five, 0x9c, [
      [28, 'other'],
      [31, 'why'],
    ]),
    auth(0x18, [
      [21, 'm'],
      [22, 'data'],
      [31, 'why'],
    ]),
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
    join([0x24, 3, 0, 0, 0, 1], auth(0x18, [[21, 'm']]), connack(five, 0, 0, [[21, 'm']]), auth(0x18, [[21, 'm']]), auth(0, [[21, 'm']])),
    join([0x10, 3, 0, 0, 0, 1], ...[1, 2, 3, 4].map((id) => publish(five, 't', 'x', { qos: 1 + (id & 1), id }))),
    join([0x18, 0x30, 0, 0, 0, 7], publish(five, 't', 'x', { pairs: [[35, 1]] }), publish(five, '', 'y', { pairs: [[35, 1]] })),
  ]
}

/** Valid sessions for a target. */
export function builtSeeds(target: string): Uint8Array[] {
  if (target === 'wire') return wireSeeds()
  return target === 'session' ? sessionSeeds() : clientStories()
}
