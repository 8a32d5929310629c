/**
 * Runs of the virtual world, each as one number: what two engines must have in common.
 *
 * Pure but for the digest: the same file runs in Node and in a browser.
 */
import { generate } from '../../world/generate.js'
import { World } from '../../world/world.js'

/** What came of some seeds. */
export interface Histories {
  /** Of each seed, a digest of every packet, event, call and fault, with the time of each. */
  readonly digests: readonly string[]
  readonly findings: readonly string[]
  /** Timers that ran, over all. */
  readonly events: number
}

/** Everything that happened under one seed. */
export async function historyOf(seed: number): Promise<{
  readonly lines: readonly string[]
  readonly findings: readonly string[]
  readonly events: number
}> {
  const lines: string[] = []
  const world = new World(generate(seed))
  world.history.trace = (line) => lines.push(line)
  const { findings, events } = await world.run()
  const { calls, delivered } = world.history
  for (const { what, at, settled, error } of calls)
    lines.push(
      `${what} of ${at}: settled ${settled}, ${error instanceof Error ? error.message : typeof error}`,
    )
  for (const { s, payload, topic, seq } of delivered)
    lines.push(`${seq}: subscription ${s} got ${payload} under ${topic}`)
  return {
    lines,
    events,
    findings: findings.map(({ rule, detail }) => `seed ${seed}: ${rule}: ${detail}`),
  }
}

/** Runs `count` seeds, every `step`-th from `first` on. */
export async function histories(first: number, count: number, step: number): Promise<Histories> {
  const digests: string[] = []
  const findings: string[] = []
  let events = 0
  for (let index = 0; index < count; index++) {
    const history = await historyOf(first + index * step)
    digests.push(await digest(history.lines.join('\n')))
    findings.push(...history.findings)
    events += history.events
  }
  return { digests, findings, events }
}

async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(bytes, 0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )
}
