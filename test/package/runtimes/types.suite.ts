/**
 * The tarball before the eyes of arethetypeswrong: in each way to resolve it, the declarations are found and are those of the code.
 *
 * The package is made of ES modules alone. TypeScript's `node16` objects to `require` of such a module, because Node could not do it when that setting
 * was made; every Node that the package is for can, and `runtimes.suite.ts` shows it. And the resolution called `node10` knows no exports map.
 * These two, and nothing else, are let pass.
 */
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageExports, packed, removeProjects, requireDist } from '../fixture.js'
import { withTools } from './fetched.js'

interface Problem {
  readonly kind: string
  readonly entrypoint?: string
  readonly resolutionKind?: string
}
interface Analysis {
  readonly types: { readonly kind: string } | false
  readonly entrypoints: Readonly<Record<string, object>>
  readonly problems: readonly Problem[]
}
interface Checker {
  createPackageFromTarballData(data: Uint8Array): object
  checkPackage(data: object): Promise<Analysis>
}

let tarball: Uint8Array

beforeAll(async () => {
  await requireDist()
  tarball = Uint8Array.from(await readFile((await packed()).tarball))
})
afterAll(removeProjects)

function isLetPass({ kind, resolutionKind }: Problem): boolean {
  return resolutionKind === 'node10' || (kind === 'CJSResolvesToESM' && resolutionKind === 'node16-cjs')
}

describe('arethetypeswrong', () => {
  withTools((tool) => {
    async function check(data: Uint8Array) {
      const { createPackageFromTarballData, checkPackage }: Checker = await import(pathToFileURL(tool.resolve('@arethetypeswrong/core')).href)
      return checkPackage(createPackageFromTarballData(data))
    }

    it('finds the declarations of every entry, and nothing wrong with them (pains 15 and 16)', async () => {
      const { types, entrypoints, problems } = await check(tarball)
      expect(types).toMatchObject({ kind: 'included' })
      expect(Object.keys(entrypoints)).toEqual(expect.arrayContaining(Object.keys(packageExports)))
      expect(problems.filter((problem) => !isLetPass(problem))).toEqual([])
    })

    it('would object to declarations that are not there', async () => {
      // The same length, so that the headers of the archive stay right. Compilers then find declarations beside the code, by luck.
      const archive = Buffer.from(gunzipSync(tarball)).toString('latin1')
      const broken = archive.replace('"./dist/wire/index.d.ts"', '"./dist/wire/lost.d.ts" ')
      expect(broken).not.toBe(archive)
      const { problems } = await check(Uint8Array.from(gzipSync(Buffer.from(broken, 'latin1'))))
      const found = problems.filter((problem) => !isLetPass(problem)).map(({ entrypoint, kind }) => `${entrypoint}: ${kind}`)
      expect(found).toContain('./wire: FallbackCondition')
    })
  })
})
