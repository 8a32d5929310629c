/**
 * The curves of growth: what a message costs while one number grows, in nanoseconds of processor time. A row is a point; `drawing.js` draws them.
 *
 * No broker stands between: a stream in memory, or the peer where sockets are what costs. Both clients have one process, and turns in it.
 */
import { runProgram } from '../child.js'
import { compared } from './sockets.js'

const words = (number) => number.toLocaleString('en')
const some = (number, noun) => `${words(number)} ${noun}${number === 1 ? '' : 's'}`
const shortOf = (number) =>
  number < 1000 ? `${number}` : number < 1e6 ? `${number / 1000}k` : `${number / 1e6}M`
const sizeOf = (bytes) =>
  bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${bytes >> 10} KiB` : `${bytes >> 20} MiB`
const powers = (most) => [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((at) => at <= most)
const sizes = [16, 256, 4096, 65_536, 1 << 20]

/** Costs by client, of a program of `alternate`: its figures are microseconds. */
async function alternated(program, settings) {
  const { processor } = compared((await runProgram(program, settings)).results)
  return { mqwire: processor.mqwire * 1000, peer: processor.peer * 1000 }
}

/** Costs by client, of a program that gives nanoseconds. */
async function timed(program, settings, ours, theirs) {
  const { nanoseconds } = await runProgram(program, settings)
  return { mqwire: nanoseconds[ours], peer: nanoseconds[theirs] }
}

// A stream of so many topics is long, and making it takes longer than a round.
const routed = (topics, { quick, ...settings }) =>
  timed(
    'routing.js',
    {
      topics,
      ...settings,
      count: 50_000,
      ...(quick || topics > 10_000 ? { rounds: 2, warmUp: 1 } : { rounds: 5, warmUp: 2 }),
    },
    'mqwire',
    'MQTT.js',
  )

// The larger the packets, the fewer of them fill a round.
const sized = (size, quick) => ({
  size,
  rounds: quick ? 2 : 3,
  seconds: 0.2,
  first: Math.round(Math.max(20, Math.min(2000, 1e6 / size))),
})

const rounded = (quick) => ({ rounds: quick ? 2 : 4, warmUp: 1 })

/** Files that a process may open, this one and those that it starts; undefined where nothing limits them. */
function mostFiles() {
  const soft = process.report.getReport().userLimits?.open_files.soft
  return Number.isInteger(soft) ? soft : undefined
}

/**
 * Each is `{ name, points, rowOf, costs }` and what the report and the drawing say of it: `rowOf(at)` names a row, `costs(at, context)` gives `mqwire`
 * and `peer`, or `skipped` with the reason.
 */
const curves = [
  {
    name: 'Filters',
    axis: 'filters',
    about:
      'received over memory; each filter has a topic, and a handler given to `listen()`; the program for MQTT.js finds its handler in a Map',
    points: powers(100_000),
    rowOf: (at) => some(at, 'filter'),
    costs: (at, { quick }) => routed(at, { filters: true, quick }),
  },
  {
    name: 'Topics',
    axis: 'topics',
    about: 'received over memory; one filter and one handler for all topics',
    points: powers(1_000_000),
    rowOf: (at) => some(at, 'topic'),
    costs: (at, { quick }) => routed(at, { quick }),
  },
  {
    name: 'Payload, received',
    axis: 'payload of a message',
    about: 'QoS 0 from the peer, `for await`',
    points: sizes,
    labelOf: sizeOf,
    rowOf: (at) => `${sizeOf(at)} received`,
    costs: async (at, { quick, peer }) =>
      alternated('receive.js', { port: (await peer()).port, ...sized(at, quick) }),
  },
  {
    name: 'Payload, sent',
    axis: 'payload of a message',
    about: 'QoS 0 to the peer, each awaited',
    points: sizes,
    labelOf: sizeOf,
    rowOf: (at) => `${sizeOf(at)} sent`,
    costs: async (at, { quick, peer }) =>
      alternated('send.js', {
        port: (await peer()).port,
        mode: 'awaited',
        ...sized(at, quick),
      }),
  },
  {
    name: 'Payload, decoded',
    axis: 'payload of a message',
    about: 'an object for each packet, `Decoder` beside the parser of mqtt-packet',
    peerName: 'mqtt-packet',
    points: sizes,
    labelOf: sizeOf,
    rowOf: (at) => `${sizeOf(at)} decoded`,
    costs: (size, { quick }) =>
      timed(
        'codec.js',
        {
          what: 'decode',
          size,
          only: ['objects', 'mqtt-packet'],
          processor: true,
          rounds: quick ? 3 : 7,
          roundTime: 15,
        },
        'objects',
        'mqtt-packet',
      ),
  },
  {
    name: 'Clients',
    axis: 'clients in one process',
    about: 'so many connections in one process to the peer, each sends one at a time at QoS 1',
    points: powers(10_000),
    rowOf: (at) => some(at, 'client'),
    async costs(clients, { quick, peer }) {
      const files = mostFiles()
      if (files < clients + 100) return { skipped: `file limit (ulimit -n ${files})` }
      return alternated('send.js', {
        port: (await peer()).port,
        mode: 'window',
        window: 1,
        clients,
        count: Math.max(20_000, 4 * clients),
        // Connecting so many takes longer than a round.
        ...(clients > 1000 ? { rounds: 2 } : rounded(quick)),
      })
    },
  },
  {
    name: 'In flight',
    axis: 'messages in flight',
    about: 'QoS 1 to the peer, so many at a time',
    points: powers(10_000),
    rowOf: (at) => `${words(at)} in flight`,
    costs: async (window, { quick, peer }) =>
      alternated('send.js', {
        port: (await peer()).port,
        mode: 'window',
        window,
        count: Math.max(20_000, 5 * window),
        ...rounded(quick),
      }),
  },
  {
    name: 'Fan-out',
    axis: 'receivers of a message',
    about:
      'so many clients in one process, over memory; each message reaches all of them, in a task of its own; the cost of one delivery',
    points: [1, 10, 100, 500, 1000],
    rowOf: (at) => `fan-out to ${words(at)}`,
    costs: (clients, { quick }) =>
      alternated('in-process.js', { clients, count: 40_000, ...rounded(quick) }),
  },
]

/** Measurements of this part, in order: one for each point. */
export const growth = curves.flatMap(
  ({ name, axis, about, points, rowOf, costs, peerName = 'MQTT.js', labelOf = shortOf }) =>
    points.map((at) => {
      const title = `growth: ${rowOf(at)}`
      return {
        part: 'growth',
        rows: { [title]: {} },
        async run(context) {
          const { mqwire, peer, skipped } = await costs(at, context)
          if (skipped !== undefined) return { [title]: { skipped } }
          const point = { curve: name, axis, about, at, label: labelOf(at) }
          const ratio = peer / mqwire
          return { [title]: { ratio, mqwire, peer, peerName, figures: 'ns', point } }
        },
      }
    }),
)
