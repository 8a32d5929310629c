/**
 * The tarball before the eyes of publint: package.json, the exports map and the files agree with each other.
 *
 * Whether compilers see the declarations as they are meant is asked in `runtimes/types.suite.ts`.
 */
import { readFile } from 'node:fs/promises'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { packed, removeProjects, requireDist } from './fixture.js'

let tarball: ArrayBuffer

beforeAll(async () => {
  await requireDist()
  tarball = Uint8Array.from(await readFile((await packed()).tarball)).buffer
})
afterAll(removeProjects)

describe('publint', () => {
  it('finds nothing to warn of, nothing to suggest', async () => {
    const { messages } = await publint({ pack: { tarball }, level: 'suggestion', strict: true })
    expect(messages).toEqual([])
  })

  it('would object to an entry without its file, and to CommonJS in a module', async () => {
    const exports = { './here': './here.js', './missing': './missing.js' }
    const text = JSON.stringify({ ...packageJson, exports })
    const encoded = (name: string, code: string) => ({
      name: `package/${name}`,
      data: new TextEncoder().encode(code),
    })
    const files = [
      encoded('package.json', text),
      encoded('here.js', "module.exports = require('node:net')\n"),
    ]
    const { messages } = await publint({ pkgDir: 'package', pack: { files }, strict: true })
    expect(messages.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['FILE_DOES_NOT_EXIST', 'FILE_INVALID_FORMAT']),
    )
  })
})
