/**
 * The rows of the codec: reading and writing packets beside mqtt-packet, by time and by heap.
 */
import { profileProgram, runProgram } from '../child.js'

const comparing = (quick) => (quick ? { rounds: 7, roundTime: 15 } : { rounds: 15, roundTime: 40 })
const times = (atLeast, stretch) => ({ target: `≥ ${atLeast}×`, atLeast, stretch })
const lacking = { skipped: 'this build or this platform lacks it' }

function versus(nanoseconds, candidate, note) {
  const peer = nanoseconds['mqtt-packet']
  return {
    ratio: peer / nanoseconds[candidate],
    mqwire: nanoseconds[candidate],
    peer,
    peerName: 'mqtt-packet',
    figures: 'ns',
    note,
  }
}

/** Ways to decode, by what the rows call them. */
const ways = {
  TypeScript: 'TypeScript',
  WebAssembly: 'WebAssembly, in place',
  'WebAssembly, copied in': 'WebAssembly, copied in',
  'an object for each packet': 'objects',
}

/** Each way beside mqtt-packet in a process of its own, so that none learns from another. */
const decoding = (title, settings, targets, basic) =>
  Object.entries(ways)
    .filter(([way]) => settings.name !== 'new topics' || way !== 'WebAssembly')
    .map(([way, candidate]) => ({
      part: 'codec',
      basic: basic && targets[way] !== undefined,
      rows: { [`decode ${title}, ${way}`]: targets[way] ?? {} },
      profile: () =>
        profileProgram('codec.js', {
          what: 'decode',
          only: [candidate],
          ...settings,
          ...comparing(false),
        }),
      async run({ quick }) {
        const only = [candidate, 'mqtt-packet']
        const { nanoseconds } = await runProgram('codec.js', {
          what: 'decode',
          only,
          ...settings,
          ...comparing(quick),
        })
        return {
          [`decode ${title}, ${way}`]:
            nanoseconds[candidate] === undefined ? lacking : versus(nanoseconds, candidate),
        }
      },
    }))

const pair = ['mqwire', 'mqtt-packet']

const encoding = (name, target, basic, making = false) => {
  const title = `${making ? 'make and encode' : 'encode'} ${name}`
  const settings = { what: 'encode', name, making, only: pair }
  return {
    part: 'codec',
    basic,
    rows: { [title]: target },
    profile: () =>
      profileProgram('codec.js', { ...settings, only: ['mqwire'], ...comparing(false) }),
    async run({ quick }) {
      const { nanoseconds } = await runProgram('codec.js', { ...settings, ...comparing(quick) })
      return { [title]: versus(nanoseconds, 'mqwire') }
    },
  }
}

const reading = (name) => ({
  part: 'codec',
  rows: { [`read ${name}`]: {} },
  async run({ quick }) {
    const { nanoseconds } = await runProgram('codec.js', {
      what: 'read',
      name,
      ...comparing(quick),
    })
    return { [`read ${name}`]: versus(nanoseconds, 'mqwire') }
  },
})

const most = (atMost) => ({ target: `≤ ${atMost} B`, atMost, unit: 'B' })

function heapRow(bytes, candidate) {
  return {
    ratio: bytes[candidate],
    mqwire: bytes[candidate],
    peer: bytes['mqtt-packet'],
    peerName: 'mqtt-packet',
    figures: 'B',
  }
}

const heapTitle = (title) => `heap a packet, ${title}`

const heap = (what, title, candidate, settings, target) => ({
  part: 'heap',
  rows: { [heapTitle(title)]: target },
  async run() {
    const { bytes } = await runProgram(
      'codec-heap.js',
      { what, only: [candidate, 'mqtt-packet'], ...settings },
      { flags: ['--expose-gc'] },
    )
    return {
      [heapTitle(title)]: bytes[candidate] === undefined ? lacking : heapRow(bytes, candidate),
    }
  },
})

const decodeHeap = (title, settings, target) =>
  ['TypeScript', 'WebAssembly'].map((way) =>
    heap('decode', `decode ${title}, ${way}`, ways[way], settings, target),
  )

const goals = { SUBSCRIBE: times(7), CONNECT: times(10) }
const others = ['PUBLISH with 5 user properties', 'CONNECT', 'SUBSCRIBE', 'AUTH']

/** Measurements of this part, in order. */
export const codec = [
  ...decoding(
    '256 B',
    { name: 'plain' },
    {
      TypeScript: times(27, 36),
      WebAssembly: times(35, 45),
      'an object for each packet': times(7),
    },
    true,
  ),
  ...decoding(
    '256 B, 5 user properties, lazily',
    { name: 'properties' },
    { TypeScript: times(55, 66), WebAssembly: times(106, 130) },
    true,
  ),
  ...decoding(
    '256 B, 5 user properties, all read',
    { name: 'properties', properties: true },
    { 'an object for each packet': times(6) },
  ),
  ...decoding('256 B, 5 user properties beyond ASCII, lazily', { name: 'international' }, {}),
  ...decoding('16 B', { name: 'small' }, {}),
  ...decoding('4 KiB', { name: 'large' }, { 'an object for each packet': times(2) }),
  ...decoding('256 B, topics that never repeat', { name: 'new topics' }, { TypeScript: times(9) }),
  encoding('PUBLISH', times(15), true),
  ...others.map((name) => encoding(name, goals[name] ?? {})),
  ...others.map((name) => encoding(name, {}, false, true)),
  ...others.map(reading),
  ...decodeHeap('256 B', { name: 'plain' }, most(4)),
  ...decodeHeap(
    '256 B, 5 user properties, lazily',
    { name: 'properties' },
    { unit: 'B', lessIsBetter: true },
  ),
  heap('encode', 'encode PUBLISH', 'mqwire', { name: 'PUBLISH' }, most(0.5)),
]
