/**
 * Options of stores on disk, and their errors. No platform API; error messages contain no value
 * except the location.
 */
import { MqttError } from '../errors.js'

/** Options of `levelStore`. */
export interface LevelStoreOptions {
  /**
   * When a batch resolves: `'sync'` (default) once it is on disk and survives a power failure,
   * `'os'` once the operating system or the browser has it, so that it only survives the process.
   */
  readonly durability?: 'sync' | 'os' | undefined
  /**
   * What happens while another owner has the store open: `'fail'` (default) rejects with
   * `ERR_STORE_LOCKED`, `'wait'` waits until it is free.
   */
  readonly lock?: 'fail' | 'wait' | undefined
  /** Gives up opening with `ERR_ABORTED`. No effect on an open store. Default: none. */
  readonly signal?: AbortSignal | undefined
  /**
   * Asks the browser not to evict this origin's data (`navigator.storage.persist()`). It may
   * refuse, or ask the user; `navigator.storage.persisted()` shows the result. No effect in Node.
   * Default false.
   */
  readonly persist?: boolean | undefined
}

/** Options of `fileStore`. */
export interface FileStoreOptions {
  /**
   * When a batch resolves: `'sync'` (default) once it is on disk and survives a power failure,
   * `'os'` once the operating system has it.
   */
  readonly durability?: 'sync' | 'os' | undefined
  /**
   * What happens while another owner has the store open: `'fail'` (default) rejects with
   * `ERR_STORE_LOCKED`, `'wait'` waits until it is free.
   */
  readonly lock?: 'fail' | 'wait' | undefined
  /** Gives up opening with `ERR_ABORTED`. No effect on an open store. Default: none. */
  readonly signal?: AbortSignal | undefined
  /**
   * Opens a log that is damaged in the middle, without the unreadable batches, and rewrites it.
   * What those batches deleted or replaced may reappear. Default false: such a log is rejected with
   * `ERR_STORE` and left unchanged.
   */
  readonly repair?: boolean | undefined
}

const common = { durability: ['sync', 'os'], lock: ['fail', 'wait'] } as const
/** Options with their values, for each function; both also accept `signal`. */
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

/** The error when opening is given up. */
export function aborted(signal: AbortSignal | undefined): MqttError {
  return new MqttError('ERR_ABORTED', undefined, { cause: signal?.reason })
}

/** The error when another owner has the store open. */
export function locked(location: string, cause?: unknown): MqttError {
  return new MqttError('ERR_STORE_LOCKED', `store locked: ${location}`, { cause })
}
