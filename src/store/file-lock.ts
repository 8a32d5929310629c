/**
 * The lock of a folder: a socket that listens while its process lives, however that ends. Node has
 * no other lock that the kernel releases with the process.
 *
 * A process number would not do: the system reuses numbers, and containers have the same ones. A
 * socket answers across the containers of one machine, and to other threads of the process.
 *
 * The socket is in the folder as `mqwire.lock-N`; the highest number counts. If it does not answer,
 * its owner is gone, and the next owner creates N + 1, which only one process can. A socket listens
 * before it gets that name. If there is a higher number by then, the socket is given up, because
 * what its process saw before may be outdated. The highest name must never be deleted, or a number
 * would be used twice. On Windows, a pipe named after the folder does all of that.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
  link,
  open,
  readdir,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { platform } from 'node:process'

const prefix = 'mqwire.lock-'
/** Name prefix of sockets before they get a number. */
const waitingPrefix = 'mqwire.locking-'
const randomLength = 8
/** Most bytes of a socket name on every system. */
const longestName = 100

/** Error code: the lock is taken. */
export const lockedCode = 'ELOCKED'
const taken = (): Error => Object.assign(new Error('the folder is locked'), { code: lockedCode })

/**
 * Takes the lock of a folder, given by its real path. Returns a function that releases it. @throws
 * Error with `lockedCode`; or the system's error
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  if (platform === 'win32') return lockPipe(folder)
  const directory = await open(folder, 'r')
  try {
    return await takeNumber(folder, directory)
  } catch (error) {
    await directory.close()
    throw error
  }
}

async function lockPipe(folder: string): Promise<() => Promise<void>> {
  const pipe = `\\\\.\\pipe\\mqwire-${createHash('sha256').update(folder.toLowerCase()).digest('hex')}`
  try {
    const server = await listening(pipe)
    return () => closed(server)
  } catch (error) {
    throw (error as { code?: string }).code === 'EADDRINUSE' ? taken() : error
  }
}

async function takeNumber(folder: string, directory: FileHandle): Promise<() => Promise<void>> {
  // Linux has a short alias for a folder whose path is too long.
  const isLong = Buffer.byteLength(join(folder, waitingPrefix)) + 2 * randomLength > longestName
  const addressIn = platform === 'linux' && isLong ? `/proc/self/fd/${directory.fd}` : folder
  for (;;) {
    const last = lastNumber(await readdir(folder))
    if (last > 0 && (await answers(join(addressIn, prefix + last)))) throw taken()
    const waiting = waitingPrefix + randomBytes(randomLength).toString('hex')
    const server = await listening(join(addressIn, waiting))
    try {
      if (await named(folder, waiting, last + 1))
        return () => release(server, folder, directory, last + 1)
    } catch (error) {
      await closed(server)
      throw error
    } finally {
      await unlink(join(folder, waiting)).catch(() => undefined)
    }
    await closed(server)
  }
}

/**
 * Gives a socket its number. False: another process was faster, and everything must be checked
 * again.
 */
async function named(folder: string, waiting: string, number: number): Promise<boolean> {
  const own = join(folder, prefix + number)
  try {
    await chmod(join(folder, waiting), 0o600)
    await link(join(folder, waiting), own)
  } catch (error) {
    // The number is taken, or its new owner has cleaned up.
    if (['EEXIST', 'ENOENT'].includes((error as { code?: string }).code ?? '')) return false
    throw error
  }
  const names = await readdir(folder)
  if (lastNumber(names) > number) {
    await unlink(own).catch(() => undefined)
    return false
  }
  const isOld = (name: string): boolean =>
    name.startsWith(waitingPrefix) || (numberOf(name) > 0 && numberOf(name) < number)
  for (const name of names) if (isOld(name)) await unlink(join(folder, name)).catch(() => undefined)
  return true
}

/**
 * Replaces the socket by an ordinary file with the next number, because programs that copy folders
 * fail on sockets. If the folder was moved, another one with another process's lock may have its
 * name; the folder was kept open until now to detect that.
 */
async function release(
  server: Server,
  folder: string,
  directory: FileHandle,
  number: number,
): Promise<void> {
  try {
    if (isSame(await stat(folder), await directory.stat())) {
      await writeFile(join(folder, prefix + (number + 1)), '', { flag: 'wx', mode: 0o600 })
      await unlink(join(folder, prefix + number))
    }
  } catch {
    // The socket no longer answers, which means the same.
  }
  await directory.close()
  await closed(server)
}

/** True for the same file or folder under any name. */
export function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev
}

const numberOf = (name: string): number =>
  name.startsWith(prefix) ? Number(name.slice(prefix.length)) || 0 : 0
const lastNumber = (names: readonly string[]): number =>
  names.reduce((last, name) => Math.max(last, numberOf(name)), 0)

function listening(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    // Not shared among the workers of a cluster.
    server.listen({ path, exclusive: true }, () => resolve(server))
    server.unref()
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

/** True unless the error proves that the owner is gone. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(!['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(code ?? '')),
    )
  })
}
