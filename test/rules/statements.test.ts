/** The check of the normative statements can fail. Whether each has its test is checked where tests have run: `npm run lab -- coverage`. */
import { expect, it } from 'vitest'
import { count, objections } from './statements.js'

it('a statement is shown by a test whose title cites it, on the side where the test stands', () => {
  const none = objections([])
  // 44 bind the client, 118 the server, 89 both.
  expect([count, none.length]).toEqual([251, 44 + 118 + 2 * 89])
  const title = 'a > [MQTT-2.1.3-1] [MQTT-9.9.9-9] b [3.1.1: MQTT-1.5.4-1]'
  const left = (file: string): string[] => objections([{ file, title }])
  const unknown = 'a test cites MQTT-9.9.9-9, which is no statement'
  const without = (text: string): string[] => [...none.filter((each) => each !== text), unknown]
  const client = 'no test of the client cites MQTT-2.1.3-1'
  expect(left('unit/client/a.test.ts')).toEqual(without(client))
  expect(left('broker/a.test.ts')).toEqual(
    without('no test of the broker in memory cites MQTT-2.1.3-1'),
  )
})
