/**
 * Common parts of stores in folders (Node): the folder, waiting for its lock, and the reserve for a
 * full disk.
 */
import { chmod, mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { platform } from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { MqttError } from '../errors.js'
import type { StoreOperation } from './base/store.js'
import { aborted, type LevelStoreOptions, locked } from './options.js'

/** Milliseconds between attempts to take a lock; there is no notification. */
const lockInterval = 200
/** Average size of values in bytes up to which a batch counts as light. */
const smallValue = 1024
/** Error texts of LevelDB and the system for a full disk. */
const noSpace = ['No space left on device', 'ENOSPC', 'EDQUOT', 'Disk quota exceeded']

/**
 * Bytes by which a reserve grows, and the most that it may have. A reserve is as large as the store
 * plus one step.
 */
export const reserveStep = 262_144
export const mostReserved = 24 * 1_048_576

/**
 * Creates the folder if missing and removes access by other users; returns its real path.
 *
 * @param own the name of a file that every folder of such a store contains
 * @throws MqttError ERR_STORE when it has other contents; or the system's error
 */
export async function preparedFolder(location: string, own: string): Promise<string> {
  await mkdir(location, { recursive: true, mode: 0o700 })
  const folder = await realpath(location)
  const { mode } = await stat(folder)
  if (platform !== 'win32' && (mode & 0o077) !== 0) {
    const names = await readdir(folder)
    // The folder existed before, so its permissions must not be changed.
    if (names.length > 0 && !names.includes(own)) {
      throw new MqttError(
        'ERR_STORE',
        `store: ${location} holds other files and is open to other users`,
      )
    }
    await chmod(folder, 0o700)
  }
  return folder
}

/**
 * Opens a store once no other process has it open, or rejects at once, depending on the options. An
 * error with the code `lockedCode` means that it is open elsewhere.
 *
 * @throws MqttError ERR_STORE_LOCKED, ERR_ABORTED; or the error of `open`
 */
export async function whenFree<T>(
  open: () => Promise<T>,
  lockedCode: string,
  location: string,
  options: Pick<LevelStoreOptions, 'lock' | 'signal'>,
): Promise<T> {
  const { lock, signal } = options
  for (;;) {
    if (signal?.aborted) throw aborted(signal)
    try {
      return await open()
    } catch (error) {
      if ((error as { code?: string }).code !== lockedCode) throw error
      if (lock !== 'wait') throw locked(location, error)
    }
    // An abort ends the pause early and is checked next.
    await pause(lockInterval, undefined, { signal }).catch(() => undefined)
  }
}

/** True when a disk, or a user's quota, is full. */
export function isFull(error: unknown): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  const text = `${code} ${message}`
  return noSpace.some((each) => text.includes(each))
}

/**
 * True for small changes that delete, or that write records of a session, without which stored
 * messages cannot be sent: on a full disk they may use the reserve.
 */
export function isUrgent(operations: readonly StoreOperation[]): boolean {
  return (
    isLight(operations) &&
    operations.some(({ type, key }) => type === 'delete' || key.startsWith('c/'))
  )
}

/** True when the values are small. */
export function isLight(operations: readonly StoreOperation[]): boolean {
  let bytes = 0
  for (const each of operations) if (each.type === 'put') bytes += each.value.length
  return bytes <= operations.length * smallValue
}

/** Approximate size of the operations in a store. */
export function bytesOf(operations: readonly StoreOperation[]): number {
  return operations.reduce(
    (sum, each) => sum + 64 + each.key.length + (each.type === 'put' ? each.value.length : 0),
    0,
  )
}
