/** Code blocks of the documentation run, what programs print is what is kept, and the site can be built. */
import { rmSync } from 'node:fs'
import path from 'node:path'
import { type Lab, type Result, together } from './lab.js'

export const about =
  'blocks of README and guides, examples, transcripts, the site; `update` writes test/package/transcript anew; `comparison` asks the other clients and writes the tables'
export const minutes = 2

const files = ['readme', 'from-mqttjs', 'site'].map((name) => `test/package/${name}.test.ts`)

/** A program of the checkout whose exit code says whether it went well. */
async function program(lab: Lab, did: string, args: readonly string[]): Promise<Result> {
  const { code, output } = await lab.node(args)
  const what = `${args[0]} ended with ${code}: ${output.split('\n').slice(-5).join(' ')}`
  return { did, findings: code === 0 ? [] : [{ what, command: `node ${args.join(' ')}` }] }
}

export async function run(lab: Lab): Promise<Result> {
  if (lab.words.includes('update'))
    return lab.vitest(['--no-file-parallelism', 'test/package/transcript/'], {
      env: { MQWIRE_TRANSCRIPT: 'update' },
    })
  if (lab.words.includes('comparison'))
    return program(lab, 'the comparison', ['bench/versus/main.js'])
  const out = path.join(lab.root, 'node_modules', '.cache', 'mqwire', 'docs-site')
  try {
    return together(
      await lab.vitest([...files, 'test/package/transcript/', 'test/package/examples/']),
      await program(lab, 'the site built', ['.ci/docs.mjs', '--out', out]),
    )
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}
