/** Transcripts that are kept, and compared with what is printed now. `npm run lab -- docs update` writes them anew. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { root } from '../fixture.js'
import { objectionTo } from './rules.js'

/** What was printed, by what was done. */
export type Transcript = readonly (readonly [title: string, printed: string])[]

/** Holds each line against the rules, and the whole against the file. */
export function expectKept(name: string, transcript: Transcript): void {
  const text = transcript.map(([title, printed]) => `== ${title}\n${printed}\n`).join('\n')
  const objections = text.split('\n').flatMap((line) => {
    const objection = objectionTo(line)
    return objection === undefined ? [] : [`${objection}: ${line.slice(0, 300)}`]
  })
  const file = path.join(root, 'test', 'package', 'transcript', `${name}.txt`)
  if (process.env['MQWIRE_TRANSCRIPT'] === 'update') writeFileSync(file, text)
  expect(objections).toEqual([])
  expect(text, 'if this is meant: npm run lab -- docs update').toBe(existsSync(file) ? readFileSync(file, 'utf8') : '')
}
