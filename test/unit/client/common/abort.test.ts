import { expect, it, vi } from 'vitest'
import { Abort } from '../../../../src/common/abort.js'
import { MqttError } from '../../../../src/errors.js'

const reason = new MqttError('ERR_ABORTED')

it('a listener is called once, with the reason there, and not after it was removed', () => {
  const abort = new Abort()
  const calls: string[] = []
  const removed = () => calls.push('removed')
  abort.addEventListener('abort', () => calls.push(`first ${abort.reason === reason}`))
  abort.addEventListener('abort', removed)
  abort.addEventListener('abort', () => calls.push('last'))
  abort.removeEventListener('abort', removed)
  expect(() => abort.throwIfAborted()).not.toThrow()
  abort.abort(reason)
  abort.abort(new MqttError('ERR_CLOSED'))
  expect(calls).toEqual(['first true', 'last'])
  expect([abort.aborted, abort.reason]).toEqual([true, reason])
  expect(() => abort.throwIfAborted()).toThrow(reason)
})

it('a listener that throws ends nothing else, and its error is not swallowed', () => {
  const later: (() => void)[] = []
  const microtask = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((task) => {
    later.push(task)
  })
  const abort = new Abort()
  const last = vi.fn()
  abort.addEventListener('abort', () => {
    throw new Error('of the program')
  })
  abort.addEventListener('abort', last)
  abort.abort(reason)
  microtask.mockRestore()
  expect(last).toHaveBeenCalledOnce()
  expect(later.length).toBe(1)
  expect(later[0]).toThrow('of the program')
})

it.each(['before', 'after'])('its signal, made %s the abort, is a real one', (when) => {
  const abort = new Abort()
  const heard = vi.fn()
  if (when === 'before') abort.signal.addEventListener('abort', heard)
  abort.abort(reason)
  expect(abort.signal).toBeInstanceOf(AbortSignal)
  expect(abort.signal).toBe(abort.signal)
  expect([abort.signal.aborted, abort.signal.reason]).toEqual([true, reason])
  expect(heard).toHaveBeenCalledTimes(when === 'before' ? 1 : 0)
})
