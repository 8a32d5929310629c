/**
 * What stores in folders have in common, in Node: the folder, the wait for its lock, the reserve for a disk that is full.
 */
import { chmod, mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { platform } from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { MqttError } from '../errors.js'
import type { StoreOperation } from './base/store.js'
import { aborted, type LevelStoreOptions, locked } from './options.js'

/** Milliseconds between two looks at a lock: there is no notification when it is free. */
const lockInterval = 200
/** Bytes of a value, on average, up to which a batch counts as light. */
const smallValue = 1024
/** What LevelDB, and the system, say of a disk that is full. */
const noSpace = ['No space left on device', 'ENOSPC', 'EDQUOT', 'Disk quota exceeded']

/** Bytes by which a reserve grows. It is as large as the store and one step, up to the most. */
export const reserveStep = 262_144
export const mostReserved = 24 * 1_048_576

/**
 * Makes the folder where it is missing, and closes it to other users; gives its real name.
 *
 * @param own the name of a file that every folder of such a store has
 * @throws MqttError ERR_STORE where it has other contents; or the system's error
 */
export async function preparedFolder(location: string, own: string): Promise<string> {
  await mkdir(location, { recursive: true, mode: 0o700 })
  const folder = await realpath(location)
  const { mode } = await stat(folder)
  if (platform !== 'win32' && (mode & 0o077) !== 0) {
    const names = await readdir(folder)
    // The folder existed before: its permissions are not ours to change.
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
 * Opens a store once no other process has it, or rejects at once, as the options say. An error with the code `lockedCode` means that it is open elsewhere.
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
    // Ends early where the signal aborts, which is looked at next.
    await pause(lockInterval, undefined, { signal }).catch(() => undefined)
  }
}

/** True for an error of a disk, or of a user's part of it, that is full. */
export function isFull(error: unknown): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  const text = `${code} ${message}`
  return noSpace.some((each) => text.includes(each))
}

/** True for what frees room, or sends what is stored: on a full disk it gets the room of the reserve. */
export function isUrgent(operations: readonly StoreOperation[]): boolean {
  return (
    isLight(operations) &&
    operations.some(({ type, key }) => type === 'delete' || key.startsWith('c/'))
  )
}

/** True where the values are small. */
export function isLight(operations: readonly StoreOperation[]): boolean {
  let bytes = 0
  for (const each of operations) if (each.type === 'put') bytes += each.value.length
  return bytes <= operations.length * smallValue
}

/** What the operations take in a store, about. */
export function bytesOf(operations: readonly StoreOperation[]): number {
  return operations.reduce(
    (sum, each) => sum + 64 + each.key.length + (each.type === 'put' ? each.value.length : 0),
    0,
  )
}
