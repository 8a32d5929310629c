/**
 * The rows of routing: what a message costs more because there are many filters. Through the client, over memory.
 */
import { runProgram } from '../child.js'

const base = 'one filter'

const many = (name, target, basic) => {
  const title = `match with ${name}, repeated topics`
  return {
    part: 'routing',
    basic,
    rows: { [title]: target },
    async run({ quick }) {
      const { more, nanoseconds } = await runProgram('routing.js', {
        names: [base, name],
        ...(quick && { rounds: 7, count: 50_000 }),
      })
      const note =
        'processor time; the difference between two clients that differ in their filters only'
      return {
        [title]: {
          ratio: more[name],
          mqwire: nanoseconds[name],
          peer: nanoseconds[base],
          peerName: `mqwire, ${base}`,
          figures: 'ns',
          note,
        },
      }
    },
  }
}

const churnTitle = 'match with 1,000 filters, a subscribe and an unsubscribe every 6,400 messages'

const churn = {
  part: 'routing',
  rows: { [churnTitle]: { unit: 'ns' } },
  async run({ quick }) {
    const { nanoseconds } = await runProgram('routing.js', {
      names: ['1,000 filters'],
      churn: true,
      ...(quick && { rounds: 7, count: 50_000 }),
    })
    return {
      [churnTitle]: {
        ratio: nanoseconds['1,000 filters'],
        mqwire: nanoseconds['1,000 filters'],
        figures: 'ns',
      },
    }
  },
}

const nanoseconds = { unit: 'ns' }

/** Measurements of this part, in order. */
export const routing = [
  many('10,000 filters', { target: '≤ 10 ns', atMost: 10, ...nanoseconds }, true),
  ...[
    '100 filters',
    '1,000 filters',
    '10,000 filters with wildcards that match',
    '1,000 deep filters',
  ].map((name) => many(name, nanoseconds)),
  churn,
]
