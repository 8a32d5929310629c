/** What a call does while the code that it needs is slow to come, or does not come at all. In a page: `test/browser/policies.test.ts`. */
import { describe, expect, it } from 'vitest'
import { deferred } from '../../src/client/abort.js'
import { loaded } from '../../src/client/loading.js'
import type { RequestClient } from '../../src/client/request.js'
import { MqttError } from '../../src/errors.js'
import { VirtualClock } from '../../src/testing/virtual-clock.js'
import { failure } from './harness.js'

/** A client that waits for a module. */
class Waiting {
  readonly clock = new VirtualClock()
  readonly module = deferred<{ readonly answer: number }>()
  readonly closed = deferred<MqttError | undefined>()

  /** Those who want to know of the end. */
  readonly listeners = new Set<(event: { readonly state: string }) => void>()
  readonly #on = (_type: string, listener: (event: { readonly state: string }) => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  end(error: MqttError | undefined): void {
    for (const listener of this.listeners) for (const state of ['disconnecting', 'closed']) listener({ state })
    this.closed.resolve(error)
  }

  load(options?: unknown): Promise<{ readonly answer: number }> {
    const client = {
      closed: this.closed.promise,
      on: this.#on,
      setTimer: (callback: () => void, delay: number) => this.clock.setTimer(callback, delay),
    }
    return loaded(this.module.promise, client as unknown as RequestClient, options)
  }
}

describe('pain 6 code that is loaded on first use', () => {
  it.each([undefined, null, {}, { timeout: 100, signal: new AbortController().signal }])(
    'comes: is given, and leaves no timer and no listener, options %o',
    async (options) => {
      const waiting = new Waiting()
      const loading = waiting.load(options)
      waiting.module.resolve({ answer: 42 })
      expect((await loading).answer).toBe(42)
      expect([waiting.clock.pending, waiting.listeners.size]).toEqual([0, 0])
    },
  )

  it('does not come: the signal ends the wait', async () => {
    const waiting = new Waiting()
    const controller = new AbortController()
    const outcome = failure(waiting.load({ signal: controller.signal }))
    await waiting.clock.settle()
    controller.abort('enough')
    expect(await outcome).toMatchObject({ code: 'ERR_ABORTED', name: 'AbortError', outcome: 'not-sent', cause: 'enough' })
    expect([waiting.clock.pending, waiting.listeners.size]).toEqual([0, 0])
  })

  it.each([new MqttError('ERR_TLS'), undefined])('does not come: the end of the client ends the wait, with %s', async (error) => {
    const waiting = new Waiting()
    const outcome = failure(waiting.load({ timeout: 1000 }))
    waiting.end(error)
    expect((await outcome).code).toBe(error?.code ?? 'ERR_CLOSED')
    expect([waiting.clock.pending, waiting.listeners.size]).toEqual([0, 0])
  })

  it.each([
    [{ timeout: 2000 }, 2000],
    [{}, 30_000],
  ])('does not come: %o ends the wait after %i ms', async (options, patience) => {
    const waiting = new Waiting()
    let ended = false
    const outcome = failure(waiting.load(options)).then((error) => {
      ended = true
      return error
    })
    await waiting.clock.advance(patience - 1)
    expect(ended).toBe(false)
    await waiting.clock.advance(1)
    expect(await outcome).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'not-sent' })
    expect(waiting.listeners.size).toBe(0)
  })

  it('cannot be loaded: a typed error with the cause', async () => {
    const waiting = new Waiting()
    const cause = new TypeError('no such file')
    waiting.module.reject(cause)
    expect(await failure(waiting.load())).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent', cause })
    expect([waiting.clock.pending, waiting.listeners.size]).toEqual([0, 0])
  })

  it.each([{ timeout: -1 }, { timeout: 'soon' }, { signal: 1 }])('P12 refuses %o, and leaves no timer and no listener', async (options) => {
    const waiting = new Waiting()
    expect(await failure(waiting.load(options))).toMatchObject({ code: 'ERR_INVALID_OPTION', option: Object.keys(options)[0] })
    expect([waiting.clock.pending, waiting.listeners.size]).toEqual([0, 0])
  })
})
