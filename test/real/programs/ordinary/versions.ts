/** Versions of what is installed here, from its package.json. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

/** Of a package in node_modules, or of this one. */
export function installedVersion(name: string): string {
  const root = path.dirname(
    createRequire(path.join(process.cwd(), 'package.json')).resolve('./package.json'),
  )
  const file =
    name === 'mqwire'
      ? path.join(root, 'package.json')
      : path.join(root, 'node_modules', name, 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
