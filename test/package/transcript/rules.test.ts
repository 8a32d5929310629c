/** The rules for what is printed object to what they are there for, and to nothing else. */
import { expect, it } from 'vitest'
import { objectionTo } from './kept.js'

it.each([
  ['no wider than two screens', 'x'.repeat(241)],
  [
    'without a line of the package',
    '    at show (file:///app/node_modules/mqwire/dist/client/lifecycle/core.js:1:2)',
  ],
  ['without an internal class', '-- a message: HandlerLoop { topic: 1 }'],
  ['without a name that the build made', "Message { topic: 'borrowed', a: true }"],
  ['without a password', "  password: 'tweety-5up3r'"],
])('a line is %s', (_rule, line) => expect(objectionTo(line)).toBeDefined())

it.each(['-- a message: Message { topic: 1, qos: 0 }', '    at file:///app/program.mjs:2:22 {'])(
  'a line may be %s',
  (line) => expect(objectionTo(line)).toBeUndefined(),
)
