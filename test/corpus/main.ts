/**
 * What `npm run corpus` runs: the table of balance, the cases as JSON lines, or everything on every transport.
 */
import { balanceOf, tableOf } from './balance.js'
import { hex } from './bytes.js'
import type { Case } from './case.js'
import { corpus } from './index.js'
import { endName, judge } from './oracle.js'
import { runCore } from './run/core-jobs.js'
import { cutJobs, jobs } from './run/jobs.js'
import { runMemory } from './run/memory.js'
import { runNetwork } from './run/network.js'
import type { Job } from './run/verdict.js'
import { states, statesOf } from './states.js'

const versions = [5, 4] as const

/** The states, and how cases spread over them. */
export function table(): string[] {
  return [
    ...states.map(({ name, group, title }) => `${name.padEnd(17)} ${group.padEnd(15)} ${title}`),
    ...versions.flatMap((version) => [
      '',
      `MQTT ${version === 5 ? '5.0' : '3.1.1'}: ${corpus(version).length} cases`,
      ...tableOf(balanceOf(corpus(version))),
    ]),
  ]
}

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

/** One case a line. */
export function* lines(): Iterable<string> {
  for (const version of versions) for (const each of corpus(version)) yield row(each)
}

/** How the cases are run, by name. */
const ways: Readonly<Record<string, (list: readonly Job[]) => string[] | Promise<string[]>>> = {
  core: runCore,
  'memory, whole': runMemory,
  'memory, in pieces': (list) => runMemory(cutJobs(list)),
  'TCP, whole': (list) => runNetwork('tcp', list),
  'TCP, in pieces': (list) => runNetwork('tcp', cutJobs(list)),
  'WebSocket, whole': (list) => runNetwork('websocket', list),
  'WebSocket, in pieces': (list) => runNetwork('websocket', cutJobs(list)),
}

/** Runs every case in every state in every way, or those cases whose name contains the text; tells as it goes. True when all was as expected. */
export async function runAll(only: string, tell: (line: string) => void): Promise<boolean> {
  const list = versions.flatMap((version) => jobs(version)).filter(({ sequence }) => sequence.name.includes(only))
  let wrong = 0
  for (const [way, run] of Object.entries(ways)) {
    const started = performance.now()
    const findings = await run(list)
    for (const found of findings.slice(0, 20)) tell(found)
    wrong += findings.length
    tell(`${way}: ${list.length} runs, ${findings.length} findings, ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
  return wrong === 0 && list.length > 0
}
