/** The check of the normative statements can fail. Whether each has its test is checked where tests have run: `npm run lab -- coverage`. */
import { describe, expect, it } from 'vitest'
import { cited, count, objections } from './statements.js'

describe('the statements that no test shows', () => {
  it('are all of them where there is no test, on each side that they bind', () => {
    const found = objections([])
    expect(count).toBe(251)
    // 44 bind the client, 118 the server, 89 both.
    expect(found.filter((text) => text.includes('the client'))).toHaveLength(44 + 89)
    expect(found.filter((text) => text.includes('the broker'))).toHaveLength(118 + 89)
  })

  it('are fewer by those that a title cites, on the side where the test stands', () => {
    const id = 'MQTT-2.1.3-1'
    const client = `no test of the client cites ${id}`
    const broker = `no test of the broker in memory cites ${id}`
    expect(objections([])).toEqual(expect.arrayContaining([client, broker]))
    const one = objections([{ file: 'unit/client/a.test.ts', title: `a > [${id}] b` }])
    expect(one).not.toContain(client)
    expect(one).toContain(broker)
    const other = objections([{ file: 'broker/a.test.ts', title: id }])
    expect(other).toContain(client)
    expect(other).not.toContain(broker)
  })

  it('do not hide ids that no statement has', () => {
    expect(objections([{ file: 'wire/a.test.ts', title: '[MQTT-9.9.9-9] a' }])).toContain(
      'a test cites MQTT-9.9.9-9, which is no statement',
    )
  })
})

it.each([
  ['[MQTT-3.1.2-1] x', ['MQTT-3.1.2-1']],
  ['a [MQTT-4.9.0-1] [MQTT-4.9.0-2] b', ['MQTT-4.9.0-1', 'MQTT-4.9.0-2']],
  ['of the older standard [3.1.1: MQTT-3.1.2-1]', []],
  ['MQTT 5.0', []],
])('"%s" cites what it says', (title, ids) => expect(cited(title)).toEqual(ids))
