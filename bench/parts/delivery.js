/**
 * Delivery without sockets, for what the client alone costs: both clients over memory, messages that are read beside a bare loop, and typed subscriptions. The
 * other targets of delivery are those of the sockets.
 */
import { runProgram } from '../child.js'
import { compared, effort, processorOf } from './sockets.js'

const delivering = (mode, title, target = {}, settings = {}) => ({
  part: 'delivery',
  rows: { [`over memory, ${title}`]: target },
  async run({ quick }) {
    const { results } = await runProgram('in-process.js', { mode, ...settings, ...effort(quick) })
    return { [`over memory, ${title}`]: compared(results) }
  },
})

/** Messages of which the application reads the payload, beside a loop that does so without a client. */
const reading = (title, leastShare, settings) =>
  delivering(
    'owned',
    `for await, owned, ${title}`,
    { target: `≥ ${leastShare * 100} % of a ${settings.bare}`, leastShare },
    settings,
  )

// One costs at most so much more than by hand; MQTT.js costs so much more.
const nearly = (atMost) => ({ target: `CPU ≤ ${atMost}×`, atMost })
const third = { target: 'CPU ≤ 1/3', atMost: 1 / 3 }

/** Processor time of typed subscriptions beside others: each is the one candidate and the other, and a target. */
const typed = (mode, title) => {
  const titleOf = (one, other) =>
    `over memory, JSON of 120 B, ${title}, ${one} beside ${other}: CPU`
  const pairs = [
    ['typed json()', 'message.json()', nearly(1.15)],
    ['typed json()', 'MQTT.js, JSON.parse', third],
    ['typed json(schema)', 'MQTT.js, JSON.parse, schema', third],
  ]
  return {
    part: 'delivery',
    rows: Object.fromEntries(pairs.map(([one, other, target]) => [titleOf(one, other), target])),
    async run({ quick }) {
      const { results } = await runProgram('typed.js', { mode, ...effort(quick) })
      return Object.fromEntries(
        pairs.map(([one, other]) => [
          titleOf(one, other),
          processorOf(results, ['user', 'system'], other, one),
        ]),
      )
    },
  }
}

const channelsTitle = 'over memory, JSON of 120 B, one of 1,000 typed channels: CPU'
const channels = {
  part: 'delivery',
  rows: { [channelsTitle]: nearly(1.3) },
  async run({ quick }) {
    const settings = { mode: 'listen-owned', channels: 1000, ...effort(quick) }
    const { results } = await runProgram('typed.js', settings)
    const keys = ['user', 'system']
    return { [channelsTitle]: processorOf(results, keys, 'one channel', 'all channels') }
  },
}

/** Measurements of this part, in order. */
export const delivery = [
  delivering('owned', 'for await, owned'),
  delivering('borrowed', 'for await, borrowed'),
  delivering('batches', 'batches'),
  delivering('listen', 'listen, borrowed'),
  reading('message.json() of 120 B', 0.6, {
    name: 'json',
    read: 'json',
    bare: 'bare JSON.parse loop',
  }),
  reading('message.payload of 256 B', 0.8, { read: 'payload', bare: 'bare slice() loop' }),
  typed('listen-owned', 'listen, owned'),
  typed('listen', 'listen, borrowed'),
  typed('owned', 'for await, owned'),
  channels,
]
