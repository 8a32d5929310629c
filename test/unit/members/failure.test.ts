/** What several members rejected with, as one error. */
import { expect, it } from 'vitest'
import { MqttError, type MqttErrorCode, type Outcome } from '../../../src/errors.js'
import { asMqttError, membersError } from '../../../src/members/failure.js'

const failure = (code: MqttErrorCode, outcome: Outcome = 'not-sent', reasonCode?: number) =>
  new MqttError(code, undefined, { outcome, ...(reasonCode === undefined ? {} : { reasonCode }) })
const gone = failure('ERR_NOT_CONNECTED')
const refused = failure('ERR_PUBLISH_REFUSED', 'refused', 0x97)
const otherwise = failure('ERR_PUBLISH_REFUSED', 'refused', 0x87)
const late = failure('ERR_TIMEOUT', 'unknown')

it.each([
  ['one', [refused], 'ERR_PUBLISH_REFUSED', 'refused', 0x97],
  ['one, the other was not there', [gone, refused], 'ERR_PUBLISH_REFUSED', 'refused', 0x97],
  ['for different reasons', [refused, otherwise], 'ERR_PUBLISH_REFUSED', 'refused', undefined],
  ['with different codes', [refused, late], 'ERR_CLOSED', 'unknown', undefined],
  ['none was there', [gone, gone], 'ERR_NOT_CONNECTED', 'not-sent', undefined],
] as const)('%s', (_, errors, code, outcome, reasonCode) => {
  const all = membersError(
    'ERR_CLOSED',
    'what',
    new Map(errors.map((error, index) => [`m${index}`, error])),
  )
  const fault = errors.some((error) => error.fault === 'remote') ? 'remote' : 'local'
  expect(all).toMatchObject({ name: 'AggregateError', errors, code, outcome, reasonCode, fault })
  expect(all.message).toBe(
    ['what:', ...errors.map(({ message }, index) => `m${index}: ${message}`)].join('\n'),
  )
  expect(MqttError.is(all)).toBe(true)
})

it('what is no error of this package becomes one', () => {
  expect(asMqttError(refused)).toBe(refused)
  const cause = new Error('x')
  expect(asMqttError(cause)).toMatchObject({ code: 'ERR_NOT_CONNECTED', cause })
})
