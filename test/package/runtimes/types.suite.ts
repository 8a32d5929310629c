/**
 * The tarball before the eyes of arethetypeswrong: in each way to resolve it, the declarations are found and are those of the code. And before those of a
 * TypeScript between the oldest and the newest, which also tells of each name in the declarations what its type is.
 *
 * The package is made of ES modules alone. TypeScript's `node16` objects to `require` of such a module, because Node could not do it when that setting
 * was made; every Node that the package is for can, and `runtimes.suite.ts` shows it. And the resolution called `node10` knows no exports map.
 * These two, and nothing else, are let pass.
 */
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
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

    it('would object to declarations that are not there', async () => {
      // The same length, so that the headers of the archive stay right. Compilers then find declarations beside the code, by luck.
      const archive = Buffer.from(gunzipSync(tarball)).toString('latin1')
      const broken = archive.replace('"./dist/wire/index.d.ts"', '"./dist/wire/lost.d.ts" ')
      expect(broken).not.toBe(archive)
      const { problems } = await check(Uint8Array.from(gzipSync(Buffer.from(broken, 'latin1'))))
      const found = problems
        .filter((problem) => !isLetPass(problem))
        .map(({ entrypoint, kind }) => `${entrypoint}: ${kind}`)
      expect(found).toContain('./wire: FallbackCondition')
    })
  })
})

const everything = entries
  .map((entry, index) => `export * as entry${index} from '${entry}'`)
  .join('\n')

// Prints each place in the declarations whose type is any, and how many places there are.
const anys = `
const ts = require(process.argv[2])
const options = { strict: true, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'], types: [] }
const program = ts.createProgram(['everything.ts', ...process.argv.slice(3)], options)
const checker = program.getTypeChecker()
let places = 0
function look(node) {
  if (ts.isIdentifier(node)) {
    places += 1
    // Names that have no type of their own: what a predicate is about, labels in tuples, one name for another, the word global.
    const { parent } = node
    const bare = ts.isTypePredicateNode(parent) || ts.isNamedTupleMember(parent) || ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent) || ts.isModuleDeclaration(parent)
    if (!bare && checker.getTypeAtLocation(node).flags & ts.TypeFlags.Any)
      console.log(node.getSourceFile().fileName + ': ' + node.text + ' in ' + parent.getText().slice(0, 80))
  }
  ts.forEachChild(node, look)
}
for (const file of program.getSourceFiles()) if (!/node_modules.(?!mqwire)|typescript.lib/.test(file.fileName)) look(file)
console.log(places > 1000 ? 'looked at all' : 'looked at ' + places)
`

describe('TypeScript 5.9', () => {
  withTools((tool) => {
    const compiler = tool.resolve('typescript')

    it.concurrent('compiles the declarations without those of Node', async () => {
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

    it.concurrent('knows the type of everything in the declarations: none is any', async () => {
      const folder = await project({ 'everything.ts': everything, 'anys.cjs': anys })
      await linkPeers(folder)
      expect(await node(['anys.cjs', compiler], folder)).toEqual({
        code: 0,
        output: 'looked at all',
      })
    })

    it.concurrent('would find an any that is not written', async () => {
      const folder = await project({
        'everything.ts': everything,
        'anys.cjs': anys,
        'odd.d.ts': 'export declare function odd(given): void\n',
      })
      expect((await node(['anys.cjs', compiler, 'odd.d.ts'], folder)).output).toContain(
        'odd.d.ts: given in given',
      )
    })
  })
})
