/** The rules for what is printed object to what they are there for, and to nothing else. */
import { describe, expect, it } from 'vitest'
import { internalClasses, objectionTo } from './rules.js'

describe('a line that is printed', () => {
  it.each([
    ['no wider than two screens', 'x'.repeat(241)],
    [
      'without a line of the package',
      '    at show (file:///app/node_modules/mqwire/dist/client/lifecycle/core.js:1:2)',
    ],
    [
      'without a line of what it is made of',
      '    at emit (/app/node_modules/ws/lib/websocket.js:960:7)',
    ],
    ['without an internal class', '-- a message: HandlerLoop { topic: 1 }'],
    ['without an internal class among fields', '  entry: BrokerSubscription {'],
    ['without a name that the build made', "Message { topic: 'borrowed', a: true }"],
    ['without a name that the build made, on a line of its own', '  bt: 5,'],
    ['without a password', "  password: 'tweety-5up3r'"],
  ])('is %s', (_rule, line) => expect(objectionTo(line)).toBeDefined())

  it.each([
    '-- a message: Message { topic: 1, qos: 0 }',
    '    at file:///app/program.mjs:2:22 {',
    'MqttError: invalid broker URL "mqtt://a": no transport for mqtt: but wss:, ws: (WebSocket port of the broker)',
    '  [cause]: [Error: connect ECONNREFUSED 127.0.0.1:1999] {',
    'x'.repeat(240),
  ])('may be %s', (line) => expect(objectionTo(line)).toBeUndefined())

  it('is held against the names of all classes', () => {
    expect(internalClasses()).toEqual(
      expect.arrayContaining(['BrokerSubscription', 'HandlerLoop', 'Core']),
    )
    expect(internalClasses()).not.toContain('MqttError')
  })
})
