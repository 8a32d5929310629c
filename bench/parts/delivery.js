/**
 * Delivery without sockets, for what the client alone costs: both clients over memory. Figures to know; the targets are those of the sockets.
 */
import { runProgram } from '../child.js'
import { compared, effort } from './sockets.js'

const delivering = (mode, title, name = 'plain') => ({
  part: 'delivery',
  rows: { [`over memory, ${title}`]: {} },
  async run({ quick }) {
    const { results } = await runProgram('in-process.js', { mode, name, ...effort(quick) })
    return { [`over memory, ${title}`]: compared(results) }
  },
})

/** Measurements of this part, in order. */
export const delivery = [
  delivering('owned', 'for await, owned'),
  delivering('borrowed', 'for await, borrowed'),
  delivering('batches', 'batches'),
  delivering('listen', 'listen, borrowed'),
]
