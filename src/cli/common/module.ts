/**
 * Modules of the person: contracts, and the hooks of a broker.
 */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { exitCodes, misuse, reasonOf } from './ending.js'

/** Imports a module, and returns its exports. @throws Ending that names the file */
export async function moduleAt(file: string): Promise<Readonly<Record<string, unknown>>> {
  // With an `await` that nothing settles, Node ends the process here.
  const end = (): void => {
    process.stderr.write(`mqwire: ${file}: an await at its top level never ends\n`)
    process.exitCode = exitCodes.usage
  }
  process.once('exit', end)
  try {
    return await import(pathToFileURL(path.resolve(file)).href)
  } catch (thrown) {
    throw misuse(`${file}: ${reasonOf(thrown)}`)
  } finally {
    process.off('exit', end)
  }
}
