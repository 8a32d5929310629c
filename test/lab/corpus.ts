/** Every byte sequence that a server may send, in every state of a session, in every way that bytes can come (`test/rules/corpus`). */
import { chosenJobs, lines, ways } from '../rules/corpus/main.js'
import { type Lab, type Result, together, within } from './lab.js'

export const about =
  'each sequence of bytes in each state: over memory, TCP and WebSocket; a word chooses by name; `json` lists them'
export const minutes = 2

/** So many runs are begun at a time. */
const batch = 500

export async function run(lab: Lab): Promise<Result> {
  const only = lab.words.join(' ')
  if (only === 'json') {
    for (const line of lines()) lab.say(line)
    return { did: 'a list', findings: [] }
  }
  const jobs = chosenJobs(only)
  if (jobs.length === 0) throw new Error(`no sequence has '${only}' in its name`)
  // Where the time ends earlier, another seed begins elsewhere.
  const first = lab.seed % jobs.length
  const list = [...jobs.slice(first), ...jobs.slice(0, first)]
  const names = Object.keys(ways)
  const results: Result[] = []
  const began = performance.now()
  for (const [number, way] of names.entries()) {
    const going = within({ ...lab, minutes: (lab.minutes * (number + 1)) / names.length }, began)
    const findings: string[] = []
    let done = 0
    while (done < list.length && (done === 0 || going())) {
      findings.push(...((await ways[way]?.(list.slice(done, done + batch))) ?? []))
      done = Math.min(done + batch, list.length)
    }
    lab.say(`${way}: ${done} of ${list.length} runs, ${findings.length} findings`)
    results.push({
      did: `${done} runs (${way})`,
      findings: findings.slice(0, 20).map((what) => {
        const name =
          list.find(({ sequence }) => what.includes(`: ${sequence.name}: `))?.sequence.name ?? ''
        return { what, command: `npm run lab -- corpus ${JSON.stringify(name)}` }
      }),
    })
  }
  return together(...results, await lab.vitest(['test/rules/corpus/']))
}
