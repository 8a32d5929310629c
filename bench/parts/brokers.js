/**
 * The rows through mosquitto. The broker is the limit of most of them, so that processor time is what tells.
 */
import { profileProgram, runProgram } from '../child.js'
import { compared, effort, processorOf } from './sockets.js'

const lacks = ({ has }) => (has.mosquitto ? undefined : 'mosquitto not found')
// 5 % for noise.
const noSlower = { target: 'no slower (≥ 0.95×)', atLeast: 0.95 }
const ofBare = (atMost, of) => ({ target: `≤ ${atMost}× a ${of}`, atMost })

const eight = {
  part: 'broker',
  lacks,
  rows: { 'send QoS 1, 8 at a time, to mosquitto': { target: '≥ 1.3×', atLeast: 1.3 } },
  async run({ mosquitto, quick }) {
    const { results } = await runProgram('send.js', {
      port: (await mosquitto()).port,
      mode: 'window',
      window: 8,
      ...effort(quick),
    })
    return { 'send QoS 1, 8 at a time, to mosquitto': compared(results) }
  },
}

const sending = {
  part: 'broker',
  lacks,
  rows: {
    'CPU per million sent to mosquitto at QoS 0': { target: '≤ 1/10', atMost: 0.1 },
    'send QoS 0 to mosquitto': {},
  },
  async run({ mosquitto, quick }) {
    const { results } = await runProgram('send.js', {
      port: (await mosquitto()).port,
      mode: 'posted',
      ...effort(quick),
    })
    return {
      'CPU per million sent to mosquitto at QoS 0': processorOf(results, ['user', 'system']),
      'send QoS 0 to mosquitto': compared(results),
    }
  },
}

const receiving = (mode, title, target) => ({
  part: 'broker',
  lacks,
  async profile({ mosquitto }) {
    const settings = {
      port: (await mosquitto()).port,
      mode,
      first: 20_000,
      most: 200_000,
      only: 'mqwire',
      rounds: 3,
      seconds: 1.5,
    }
    return profileProgram('from-broker.js', settings)
  },
  rows: {
    [`user CPU per million received from mosquitto, ${title}`]: target,
    [`user CPU per million received from mosquitto, ${title}, beside a bare socket`]: ofBare(
      1.5,
      'bare socket',
    ),
    [`receive QoS 0 from mosquitto, ${title}`]: {},
  },
  async run({ mosquitto, quick }) {
    const settings = {
      port: (await mosquitto()).port,
      mode,
      first: 20_000,
      most: 200_000,
      ...effort(quick),
      seconds: quick ? 0.4 : 1.5,
      rounds: quick ? 3 : 5,
    }
    const { results } = await runProgram('from-broker.js', settings)
    return {
      [`user CPU per million received from mosquitto, ${title}`]: processorOf(results, ['user']),
      [`user CPU per million received from mosquitto, ${title}, beside a bare socket`]: processorOf(
        results,
        ['user'],
        'bare socket',
      ),
      [`receive QoS 0 from mosquitto, ${title}`]: compared(results),
    }
  },
})

const trips = (title, program, settings, bare) => ({
  part: 'broker',
  lacks,
  async profile({ mosquitto }) {
    return profileProgram(program, {
      port: (await mosquitto()).port,
      first: 500,
      ...settings,
      only: 'mqwire',
      rounds: 3,
      seconds: 0.5,
    })
  },
  rows: {
    [title]: noSlower,
    [`${title}: CPU`]: {},
    ...(bare && { [`${title}: CPU beside a bare ping-pong`]: ofBare(1.3, 'bare ping-pong') }),
  },
  async run({ mosquitto, quick }) {
    const { results } = await runProgram(program, {
      port: (await mosquitto()).port,
      first: 500,
      ...settings,
      ...(bare && { bare }),
      ...effort(quick),
    })
    return {
      [title]: compared(results),
      [`${title}: CPU`]: processorOf(results, ['user', 'system']),
      ...(bare && {
        [`${title}: CPU beside a bare ping-pong`]: processorOf(
          results,
          ['user', 'system'],
          'bare ping-pong',
        ),
      }),
    }
  },
})

/** Measurements of this part, in order. */
export const brokers = [
  eight,
  sending,
  receiving('owned', 'for await, owned', { target: '≤ 1/3', atMost: 1 / 3 }),
  receiving('listen', 'listen, borrowed', { lessIsBetter: true }),
  trips('round trip through mosquitto', 'round-trips.js', {}, true),
  trips('QoS 1 one at a time through mosquitto', 'send.js', { mode: 'window', window: 1 }, true),
  trips('QoS 1 × 8 of 1 KiB through mosquitto', 'send.js', {
    mode: 'window',
    window: 8,
    size: 1024,
  }),
]
