/** Every case once on a client over TCP on the loopback interface; `npm run corpus -- --all` runs each in every state, whole and in pieces. */
import { describe, expect, it } from 'vitest'
import { shareOf } from './run/jobs.js'
import { misjudged } from './run/misjudged.js'
import { runNetwork } from './run/network.js'

const patience = 240_000
/** Where the states begin to go round: at another one than on the other transport. */
const offset = 0

describe('the corpus on a client over TCP, each case in one state, every other one in pieces', () => {
  it('MQTT 5.0: the same ends as over memory', async () => expect(await runNetwork('tcp', shareOf(5, offset))).toEqual([]), patience)

  it('MQTT 3.1.1: the same ends as over memory', async () => expect(await runNetwork('tcp', shareOf(4, offset))).toEqual([]), patience)

  it(
    'would notice: each wrong expectation is found',
    async () => {
      // A client that does not close would be waited for in vain.
      const wrong = misjudged().slice(1)
      expect(await runNetwork('tcp', wrong)).toHaveLength(wrong.length)
    },
    patience,
  )
})
