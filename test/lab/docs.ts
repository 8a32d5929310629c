/** Code blocks of the documentation run, in Node and on the site that is built of it, and what programs print is what is kept. */
import type { Lab, Result } from './lab.js'

export const about =
  'blocks of README and guides, in Node and in the pages of the site, examples, transcripts; `update` writes test/package/transcript anew; `comparison` asks the other clients and writes the tables'
export const minutes = 3

const files = ['readme.test', 'from-mqttjs.test', 'site.test', 'programs.suite'].map(
  (name) => `test/package/${name}.ts`,
)

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
  return lab.vitest([...files, 'test/package/transcript/', 'test/package/examples/'])
}
