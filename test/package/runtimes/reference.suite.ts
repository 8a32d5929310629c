/**
 * The API reference below `docs/reference`: every export and every member has a docstring, and the committed pages are what the docstrings give.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { node, root } from '../fixture.js'
import { withTools } from './fetched.js'

const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

const check = (folder: string) => node([path.join(folder, '.ci', 'reference.mjs'), '--check'], folder, 110_000)

/** A checkout of its own in which some files say something else. */
async function doctored(changes: Readonly<Record<string, readonly [from: string, to: string]>>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-reference-'))
  folders.push(folder)
  for (const name of ['.ci', 'docs/reference', 'examples/arguments.js', 'src', 'package.json', 'tsconfig.json'])
    await cp(path.join(root, name), path.join(folder, name), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'junction')
  for (const [name, [from, to]] of Object.entries(changes)) {
    const file = path.join(folder, name)
    const text = await readFile(file, 'utf8')
    if (!text.includes(from)) throw new Error(`${name} does not say ${from}`)
    await writeFile(file, text.replace(from, to))
  }
  return folder
}

describe('the API reference', () => {
  withTools(() => {
    it.concurrent('is what the docstrings give, and none is missing', async () => {
      expect(await check(root)).toEqual({ code: 0, output: '' })
    }, 120_000)

    it.concurrent('would be found out if a docstring were missing, another one false, and a type out of reach', async () => {
      const folder = await doctored({
        'src/client/api/reconnecting.ts': ['  /** Least delay in milliseconds. Default 1,000. */\n', ''],
        'src/client/api/publishing.ts': ['Default 10,000.', 'Default 10,001.'],
        'src/client/public.ts': ['  Grant,\n', ''],
      })
      const { code, output } = await check(folder)
      expect(code).toBe(1)
      expect(output).toMatch(/mqwire\.ExponentialOptions\.min .*does not have any documentation/)
      expect(output).toMatch(/Grant, .*is referenced by .*but not included in the documentation/)
      expect(output).toContain('not what the docstrings give: mqwire.md')
    }, 120_000)
  })
})
