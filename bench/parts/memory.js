/**
 * The rows of memory: garbage, growth, what a kept message keeps, and heap bytes per message by lifetime; and how late messages are at a steady rate. Runs
 * with a controlled collector.
 */
import { runProgram } from '../child.js'

const collected = { flags: ['--expose-gc'], timeout: 400_000 }

const steady = (mode, title, targets) => {
  const [garbage, delay] = [
    `garbage at a steady 100,000 msgs/s, ${title}`,
    `p99 of event-loop delay at 100,000 msgs/s, ${title}`,
  ]
  return {
    part: 'memory',
    rows: {
      [garbage]: targets.garbage ?? { lessIsBetter: true },
      // A tenth of a millisecond for noise.
      [delay]: targets.delay ?? { lessIsBetter: true },
    },
    async run({ peer, quick }) {
      const settings = { port: (await peer()).port, mode, ...(quick && { seconds: 1, turns: 1 }) }
      const { mqwire, 'MQTT.js': other } = await runProgram('steady.js', settings, collected)
      const side = (key, figures) => ({
        ratio: mqwire[key] / other[key],
        mqwire: mqwire[key],
        peer: other[key],
        peerName: 'MQTT.js',
        figures,
      })
      return { [garbage]: side('bytes', 'B'), [delay]: side('p99', 'ms') }
    },
  }
}

const shares = { p50: 'p50', p99: 'p99', p999: 'p99.9' }
// A tenth of a millisecond for noise.
const noWorse = { target: 'no worse (≤ 1.1×)', atMost: 1.1 }

const latency = (mode, title) => {
  const titleOf = (share) => `${shares[share]} of latency at 20,000 msgs/s, ${title}`
  return {
    part: 'latency',
    async lacks({ peer }) {
      const { kind } = await peer()
      return kind === 'C' ? undefined : 'no C compiler: the peer in Node sends by milliseconds'
    },
    rows: {
      [titleOf('p50')]: noWorse,
      [titleOf('p99')]: noWorse,
      [titleOf('p999')]: { lessIsBetter: true },
    },
    async run({ peer, quick }) {
      const { port } = await peer()
      const settings = {
        port,
        mode,
        latency: true,
        rate: 20_000,
        ...(quick ? { seconds: 1, turns: 1 } : { turns: 5 }),
      }
      const { mqwire, 'MQTT.js': other } = await runProgram('steady.js', settings, collected)
      const row = (share) => ({
        ratio: mqwire[share] / other[share],
        mqwire: mqwire[share],
        peer: other[share],
        peerName: 'MQTT.js',
        figures: 'ms',
      })
      return Object.fromEntries(Object.keys(shares).map((share) => [titleOf(share), row(share)]))
    },
  }
}

const keepTitle = 'keep 1 of 1,000 over 1,000,000 messages: memory ÷ allowed'

const keep = {
  part: 'memory',
  rows: { [keepTitle]: { target: '≤ 1 × what was kept × (size + 8 KiB)', atMost: 1 } },
  async run({ peer, quick }) {
    const { kept, grown, allowed, largest, copied, wrong } = await runProgram(
      'keep.js',
      { port: (await peer()).port, ...(quick && { count: 200_000 }) },
      collected,
    )
    if (wrong > 0) throw new Error(`${wrong} kept messages have another payload`)
    const note = `${kept} messages; the largest buffer behind a payload has ${largest} bytes, structuredClone makes ${copied}`
    return { [keepTitle]: { ratio: grown / allowed, mqwire: grown / kept, figures: 'B', note } }
  },
}

const growth = (mode, qos) => {
  const title = `heap growth over 10,000,000 messages, ${mode}, QoS ${qos}`
  return {
    part: 'memory',
    // What V8 notes and compiles along the way is some 100 KiB, however many messages there are.
    rows: { [title]: { target: 'none (≤ 1 MiB, 0.1 B a message)', atMost: 1024, unit: 'KiB' } },
    async run({ peer, quick }) {
      const settings = {
        port: (await peer()).port,
        mode,
        qos,
        messages: quick ? 500_000 : 10_000_000,
      }
      const { heap, outside, seen } = await runProgram('growth.js', settings, collected)
      if (seen !== settings.messages)
        throw new Error(`${seen} of ${settings.messages} messages were seen`)
      return {
        [title]: {
          ratio: (heap + outside) / 1024,
          mqwire: heap / 1024,
          figures: 'KiB',
          note: `${Math.round(outside / 1024)} KiB of it in array buffers`,
        },
      }
    },
  }
}

const modes = ['owned', 'borrowed', 'batches', 'listen', 'listen-owned']
const heapTitle = (mode, qos) => `heap a message received, QoS ${qos}, ${mode}`

const heapOf = (qos) => ({
  part: 'memory',
  rows: Object.fromEntries(
    modes.map((mode) => [heapTitle(mode, qos), { unit: 'B', lessIsBetter: true }]),
  ),
  async run({ peer }) {
    const { port } = await peer()
    const { bytes: other } = await runProgram(
      'message-heap.js',
      { port, modes: ['MQTT.js'], qos },
      collected,
    )
    const rows = {}
    for (const mode of modes) {
      const { bytes } = await runProgram('message-heap.js', { port, modes: [mode], qos }, collected)
      rows[heapTitle(mode, qos)] = {
        ratio: bytes[mode],
        mqwire: bytes[mode],
        peer: other['MQTT.js'],
        peerName: 'MQTT.js',
        figures: 'B',
      }
    }
    return rows
  },
})

/** Measurements of this part, in order. */
export const memory = [
  steady('listen', 'listen, borrowed', {
    garbage: { target: "≤ 1/20 of MQTT.js's", atMost: 0.05 },
    delay: { target: 'no worse (≤ 1.1×)', atMost: 1.1 },
  }),
  steady('owned', 'for await, owned', {}),
  latency('owned', 'for await, owned'),
  latency('listen', 'listen, borrowed'),
  keep,
  ...['owned', 'borrowed', 'batches', 'listen'].map((mode) => growth(mode, 0)),
  growth('owned', 1),
  heapOf(0),
  heapOf(1),
]
