/**
 * Options of stores on disks, and the errors that all of them raise by them.
 *
 * Nothing here touches a platform. No message repeats a value but the location.
 */
import { MqttError } from '../errors.js'

/** How a store is opened. */
export interface LevelStoreOptions {
  /**
   * When a batch fulfils: `'sync'` (default) once it is on the disk and outlives a loss of power, `'os'` once the operating system or the browser has
   * it, so that it outlives the process only.
   */
  readonly durability?: 'sync' | 'os' | undefined
  /** What happens while another owner has the store open: `'fail'` (default) rejects with `ERR_STORE_LOCKED`, `'wait'` waits until it is free. */
  readonly lock?: 'fail' | 'wait' | undefined
  /** Gives up opening, with `ERR_ABORTED`. Has no effect on a store that is open. Default: none. */
  readonly signal?: AbortSignal | undefined
  /**
   * Asks the browser not to evict what this origin keeps (`navigator.storage.persist()`). It may say no, or ask the user; `navigator.storage.persisted()`
   * says what came of it. Nothing is asked in Node. Default false.
   */
  readonly persist?: boolean | undefined
}

/** How a store of `fileStore` is opened. */
export interface FileStoreOptions {
  /** When a batch fulfils: `'sync'` (default) once it is on the disk and outlives a loss of power, `'os'` once the operating system has it. */
  readonly durability?: 'sync' | 'os' | undefined
  /** What happens while another owner has the store open: `'fail'` (default) rejects with `ERR_STORE_LOCKED`, `'wait'` waits until it is free. */
  readonly lock?: 'fail' | 'wait' | undefined
  /** Gives up opening, with `ERR_ABORTED`. Has no effect on a store that is open. Default: none. */
  readonly signal?: AbortSignal | undefined
  /**
   * Opens a log that is damaged in the middle, without the batches that cannot be read, and writes it once more. What those batches deleted may be there again,
   * and what they replaced too. Default false: such a log rejects with `ERR_STORE`, and is left as it is.
   */
  readonly repair?: boolean | undefined
}

const common = { durability: ['sync', 'os'], lock: ['fail', 'wait'] } as const
/** By the function: each option with its values; `signal` is known to both. */
const allowed = {
  levelStore: { ...common, persist: [false, true] },
  fileStore: { ...common, repair: [false, true] },
}

/** @throws MqttError ERR_INVALID_OPTION, ERR_ABORTED */
export function checkOptions(
  location: string,
  options: LevelStoreOptions | FileStoreOptions,
  of: keyof typeof allowed = 'levelStore',
): void {
  const known: Readonly<Record<string, readonly unknown[]>> = allowed[of]
  if (typeof location !== 'string' || location === '')
    throw invalid('location', 'text that is not empty')
  if (typeof options !== 'object' || options === null) throw invalid('options', 'an object')
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const values = known[name]
    if (value === undefined || values?.includes(value)) continue
    if (values !== undefined)
      throw invalid(name, values.map((each) => JSON.stringify(each)).join(' or '))
    if (name !== 'signal')
      throw new MqttError('ERR_INVALID_OPTION', `unknown option ${name}`, { option: name })
    if (typeof (value as AbortSignal).aborted !== 'boolean') throw invalid(name, 'an AbortSignal')
  }
  if (options.signal?.aborted) throw aborted(options.signal)
}

function invalid(option: string, expected: string): MqttError {
  return new MqttError('ERR_INVALID_OPTION', `${option} must be ${expected}`, { option })
}

/** The opening was given up. */
export function aborted(signal: AbortSignal | undefined): MqttError {
  return new MqttError('ERR_ABORTED', undefined, { cause: signal?.reason })
}

/** Another owner has the store open. */
export function locked(location: string, cause?: unknown): MqttError {
  return new MqttError('ERR_STORE_LOCKED', `store locked: ${location}`, { cause })
}
