/**
 * What stands in for `vitest` inside a browser: its own runner, matchers and spies, without the process around them.
 *
 * Holds what the pure suites use, and nothing more: a name that is missing here fails when the bundle is made.
 */
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  customMatchers,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect'
import { fn, restoreAllMocks, spyOn } from '@vitest/spy'
import * as chai from 'chai'
import { fakeTimers } from './timers.js'

export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  it,
  onTestFinished,
  test,
} from '@vitest/runner'
export { expectTypeOf } from 'expect-type'

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin)

export const expect = Object.assign(
  (value, message) => chai.expect(value, message),
  chai.expect,
  globalThis[ASYMMETRIC_MATCHERS_OBJECT],
  {
    unreachable: (message = '') => chai.assert.fail(`this was not to be reached ${message}`),
    /** What has to come is waited for. */
    poll: (probe) =>
      new Proxy(
        {},
        {
          get:
            (_, matcher) =>
            (...given) =>
              waitFor(async () => expect(await probe())[matcher](...given)),
        },
      ),
  },
)
setState({ assertionCalls: 0 }, expect)
Object.defineProperty(globalThis, GLOBAL_EXPECT, {
  value: expect,
  writable: true,
  configurable: true,
})
chai.expect.extend(expect, customMatchers)

/** What globals were before they were replaced: names with their property descriptors. */
const replaced = new Map()

/** Asks again and again, for ten seconds, until it does not throw. */
async function waitFor(probe) {
  const end = performance.now() + 10_000
  for (;;) {
    try {
      return await probe()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export const vi = {
  ...fakeTimers,
  fn,
  spyOn,
  restoreAllMocks,
  waitFor,
  mocked: (item) => item,
  stubGlobal(name, value) {
    if (!replaced.has(name)) replaced.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
    Object.defineProperty(globalThis, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: true,
    })
  },
  unstubAllGlobals() {
    for (const [name, before] of replaced) {
      if (before === undefined) delete globalThis[name]
      else Object.defineProperty(globalThis, name, before)
    }
    replaced.clear()
  },
}
