/**
 * The API reference of the site: every export and every member has a docstring, every type that a reader meets is there. `site.suite.ts` builds it as it is.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { node, root } from '../fixture.js'
import { withTools } from './fetched.js'

const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

/** A checkout of its own in which some files say something else. */
async function doctored(
  changes: Readonly<Record<string, readonly [from: string, to: string]>>,
): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-reference-'))
  folders.push(folder)
  for (const name of ['.ci', 'examples/arguments.js', 'src', 'package.json', 'tsconfig.json'])
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

withTools(() => {
  it('the API reference is not written when a docstring is missing, or a type out of reach', async () => {
    const folder = await doctored({
      'src/client/api/reconnecting.ts': [
        '  /** Least delay in milliseconds. Default 1,000. */\n',
        '',
      ],
      'src/client/public.ts': ['  Grant,\n', ''],
    })
    const { code, output } = await node(
      [path.join(folder, '.ci', 'docs.mjs'), '--reference', path.join(folder, 'out')],
      folder,
      110_000,
    )
    expect(code).toBe(1)
    expect(output).toMatch(/mqwire\.ExponentialOptions\.min .*does not have any documentation/)
    expect(output).toMatch(/Grant, .*is referenced by .*but not included in the documentation/)
  }, 120_000)
})
