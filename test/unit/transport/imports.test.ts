import { readdirSync } from 'node:fs'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

const folder = 'src/transport'

async function bundle(name: string): Promise<{ builtins: string[]; code: string }> {
  const result = await build({
    entryPoints: [`${folder}/${name}.ts`],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    external: ['ws'],
    treeShaking: true,
    logLevel: 'silent',
  })
  const imports = Object.values(result.metafile.inputs).flatMap((input) => input.imports)
  return {
    builtins: imports.filter(({ external }) => external).map(({ path }) => path),
    code: result.outputFiles[0]?.text ?? '',
  }
}

describe('imports of the transports', () => {
  it.each(['websocket', 'memory', 'message-port', 'duplex'])(
    '%s needs no Node builtin and no package',
    async (name) => {
      const { builtins, code } = await bundle(name)
      expect(builtins).toEqual([])
      expect(code).not.toMatch(/\bBuffer\b|\bprocess\b/)
    },
  )

  const names = readdirSync(folder).map((file) => file.replace('.ts', ''))
  it.each(names)('%s does nothing when it is imported only', async (name) => {
    const source = `import './${name}.js'`
    const result = await build({
      stdin: { contents: source, resolveDir: folder, loader: 'ts' },
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      external: ['ws'],
      // Without this esbuild believes package.json's `sideEffects` and drops everything unseen.
      ignoreAnnotations: true,
      logLevel: 'silent',
    })
    const harmless = /^(\/\/.*|import .*|var \w+ = [\d* ]+;|)$/
    expect(
      (result.outputFiles[0]?.text ?? '').split('\n').filter((line) => !harmless.test(line)),
    ).toEqual([])
  })
})
