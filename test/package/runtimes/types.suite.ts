/**
 * The tarball before the eyes of arethetypeswrong, and of a TypeScript between the oldest and the newest.
 *
 * The package is made of ES modules alone. TypeScript's `node16` objects to `require` of such a module, because Node could not do it when that setting
 * was made; every Node that the package is for can, and `runtimes.suite.ts` shows it. And the resolution called `node10` knows no exports map.
 * These two, and nothing else, are let pass.
 */
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  entries,
  linkPeers,
  node,
  packageExports,
  packed,
  project,
  removeProjects,
  requireDist,
} from '../fixture.js'
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
  return (
    resolutionKind === 'node10' || (kind === 'CJSResolvesToESM' && resolutionKind === 'node16-cjs')
  )
}

describe('arethetypeswrong', () => {
  withTools((tool) => {
    async function check(data: Uint8Array) {
      const { createPackageFromTarballData, checkPackage }: Checker = await import(
        pathToFileURL(tool.resolve('@arethetypeswrong/core')).href
      )
      return checkPackage(createPackageFromTarballData(data))
    }

    it('finds the declarations of every entry, and nothing wrong with them', async () => {
      const { types, entrypoints, problems } = await check(tarball)
      expect(types).toMatchObject({ kind: 'included' })
      expect(Object.keys(entrypoints)).toEqual(expect.arrayContaining(Object.keys(packageExports)))
      expect(problems.filter((problem) => !isLetPass(problem))).toEqual([])
    })
  })
})

const everything = entries
  .map((entry, index) => `export * as entry${index} from '${entry}'`)
  .join('\n')

describe('TypeScript 5.9', () => {
  withTools((tool) => {
    const compiler = tool.resolve('typescript')

    it('compiles the declarations without those of Node', async () => {
      const module = 'nodenext'
      const settings = {
        target: 'es2022',
        lib: ['es2022', 'dom'],
        types: [],
        strict: true,
        skipLibCheck: false,
        noEmit: true,
        module,
      }
      const folder = await project({
        'everything.ts': everything,
        'tsconfig.json': JSON.stringify({ compilerOptions: settings }),
      })
      await linkPeers(folder)
      expect(
        await node([compiler.replace(/typescript\.js$/, 'tsc.js'), '-p', folder], folder),
      ).toEqual({ code: 0, output: '' })
    })
  })
})
