/** What `npm run lab -- corpus` takes from here: the cases as JSON lines, and the ways in which they are run. */
import { hex } from './bytes.js'
import type { Case } from './case.js'
import { corpus } from './index.js'
import { endName, judge } from './oracle.js'
import { byteJobs, cutJobs, type Job, jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'
import { runNetwork } from './run/network.js'
import { statesOf } from './states.js'

const versions = [5, 4] as const

function row({ name, version, type, meanings, bytes }: Case): string {
  const expected = Object.fromEntries(
    statesOf(version).map((state) => {
      const judged = judge(version, meanings, state)
      const { announced, cause, rule, acks, auths } = judged
      return [state.name, { end: endName(judged), announced, cause, rule, acks, auths }]
    }),
  )
  return JSON.stringify({ name, version, packet: type, hex: hex([...bytes]), expected })
}

export function* lines(): Iterable<string> {
  for (const version of versions) for (const each of corpus(version)) yield row(each)
}

export const ways: Readonly<Record<string, (list: readonly Job[]) => Promise<string[]>>> = {
  'memory, whole': runMemory,
  'memory, in pieces': (list) => runMemory(cutJobs(list)),
  'memory, byte by byte': (list) => runMemory(byteJobs(list)),
  'TCP, whole': (list) => runNetwork('tcp', list),
  'TCP, in pieces': (list) => runNetwork('tcp', cutJobs(list)),
  'WebSocket, whole': (list) => runNetwork('websocket', list),
  'WebSocket, in pieces': (list) => runNetwork('websocket', cutJobs(list)),
}

/** Every case in every state, or those cases whose name contains the text. */
export const chosenJobs = (only: string): Job[] =>
  versions
    .flatMap((version) => jobs(version))
    .filter(({ sequence }) => sequence.name.includes(only))
