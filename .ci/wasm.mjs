/**
 * Compiles `src/wasm/scanner.as` (AssemblyScript) into `src/wasm/binary.ts`, which holds the WebAssembly as text and is committed, so that the sources
 * run without a build. The same source gives the same bytes, whenever and wherever.
 *
 * `.ci/build.mjs` calls it; by hand, `node .ci/wasm.mjs` writes the module anew and says how large it is. It assumes that node_modules is complete.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'

const sourceFile = fileURLToPath(new URL('../src/wasm/scanner.as', import.meta.url))
const moduleFile = fileURLToPath(new URL('../src/wasm/binary.ts', import.meta.url))
const packageFile = fileURLToPath(
  new URL('../node_modules/assemblyscript/package.json', import.meta.url),
)

// One memory of seven pages, laid out by the source itself; no runtime, no start function, nothing imported.
const memory = ['--runtime', 'stub', '--initialMemory', '7', '--maximumMemory', '7']
const options = ['-O3', '--converge', '--noAssert', '--enable', 'simd', ...memory]

/** The AssemblyScript source. */
export function readSource() {
  return readFileSync(sourceFile, 'utf8')
}

/** In half the time: for what is compiled to be tried once. */
const quickly = ['-O1', '--noAssert', '--enable', 'simd', ...memory]

/** Compiles a source to WebAssembly, for tries with less care. Throws an Error that says what does not compile. */
export async function compile(source, isTry = false) {
  const { default: asc } = await import('assemblyscript/asc')
  let binary
  let said = ''
  const { error } = await asc.main(
    ['scanner.ts', '--outFile', 'scanner.wasm', ...(isTry ? quickly : options)],
    {
      readFile: (name) => (name === 'scanner.ts' ? source : null),
      writeFile: (_name, contents) => {
        binary = contents
      },
      listFiles: () => [],
      stdout: { write: () => {} },
      stderr: {
        write: (text) => {
          said += text
        },
      },
    },
  )
  if (error || binary === undefined)
    throw new Error(`scanner.as does not compile\n${said}${error?.message ?? ''}`.trimEnd())
  return binary
}

// Of everything that the bytes depend on.
function digestOf(source) {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8'))
  return createHash('sha256')
    .update(JSON.stringify([source, version, options]))
    .digest('hex')
}

/** The module that holds the compiled source. */
export async function moduleOf(source) {
  const binary = await compile(source)
  const lines = [
    '/**',
    ' * The WebAssembly of scanner.as in base64, written by `npm run build`: not to be edited.',
    ' *',
    ` * Of source, compiler and settings with the digest ${digestOf(source)}.`,
    ' */',
    '',
    '/** See `loadScanner`. */',
    'export const binary =',
    `  '${Buffer.from(binary).toString('base64')}'`,
  ]
  return { text: `${lines.join('\n')}\n`, size: binary.length }
}

/** Writes the module anew when it is not that of the source. */
export async function updateModule() {
  const source = readSource()
  if (!readFileSync(moduleFile, 'utf8').includes(digestOf(source)))
    writeFileSync(moduleFile, (await moduleOf(source)).text)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  argumentsOf({ usage: 'node .ci/wasm.mjs', about: 'Writes src/wasm/binary.ts from scanner.as.' })
  const { text, size } = await moduleOf(readSource())
  writeFileSync(moduleFile, text)
  console.log(`${size} bytes`)
}
