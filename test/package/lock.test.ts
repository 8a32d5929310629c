/**
 * The lock files are the same for everyone: they name versions and checksums, never the place that somebody installed them from.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from './fixture.js'

interface Entry {
  readonly resolved?: string
  readonly integrity?: string
  readonly inBundle?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** Each with how many packages for some platforms only it has at least: those of Metro run everywhere. */
const locks = [
  ['package-lock.json', 20],
  ['.ci/tools/package-lock.json', 20],
  ['.ci/tools/next/package-lock.json', 20],
  ['.ci/tools/programs/package-lock.json', 0],
  ['.ci/tools/react-native/package-lock.json', 0],
  ['.ci/tools/site/package-lock.json', 20],
] as const

describe.each(locks)('%s', (file, leastOptional) => {
  const { packages } = JSON.parse(readFileSync(path.join(root, file), 'utf8')) as {
    packages: Readonly<Record<string, Entry>>
  }
  const installed = Object.entries(packages).filter(([name]) => name !== '')

  it('records no download address', () => {
    expect(installed.length).toBeGreaterThan(40)
    expect(
      installed.filter(([, entry]) => entry.resolved !== undefined).map(([name]) => name),
    ).toEqual([])
  })

  it('has a checksum for every package, or for that which it comes in', () => {
    expect(
      installed
        .filter(([, entry]) => entry.integrity === undefined && entry.inBundle !== true)
        .map(([name]) => name),
    ).toEqual([])
  })

  it('has the packages of every platform, without which npm ci refuses it', () => {
    const wanted = installed.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}))
    expect(wanted.length).toBeGreaterThanOrEqual(leastOptional)
    expect(
      wanted.filter((name) => !installed.some(([at]) => at.endsWith(`node_modules/${name}`))),
    ).toEqual([])
  })
})
