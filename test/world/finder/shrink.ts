/**
 * Makes a failing program smaller while it goes on failing by the same rule: without steps, clients, signals, options, with plain arguments.
 *
 * Deterministic where its world is, and bounded: it gives up after so many runs. What it gives is for people to read.
 */
import type { Finding } from './history.js'
import type { Call, ClientPlan, Program, Step } from './program.js'

/** Runs a program and gives what was found. */
export type Try = (program: Program) => Promise<readonly Finding[]>

/** The smallest program that was found to break the same rule. */
export async function shrink(program: Program, rule: string, attempt: Try, most = 500): Promise<Program> {
  let best = program
  let left = most
  const fails = async (candidate: Program): Promise<boolean> => {
    left -= 1
    const found = await attempt(candidate)
    return found.some((finding) => finding.rule === rule)
  }
  for (let again = true; again && left > 0; ) {
    again = false
    for (const candidate of smaller(best)) {
      if (left <= 0) break
      if (!(await fails(candidate))) continue
      best = candidate
      again = true
      break
    }
  }
  return best
}

function* smaller(program: Program): Generator<Program> {
  yield* fewerSteps(program)
  for (const clients of simplerClients(program.clients)) yield { ...program, clients }
  for (let index = 0; index < program.steps.length; index++) {
    for (const step of simplerSteps(program.steps[index] as Step))
      yield { ...program, steps: program.steps.map((each, at) => (at === index ? step : each)) }
  }
  const { latency, pieces, rate } = program.link
  if (rate !== undefined) yield { ...program, link: { latency, pieces } }
  if (pieces !== 'whole') yield { ...program, link: { ...program.link, pieces: 'whole' } }
  if (latency !== 1) yield { ...program, link: { ...program.link, latency: 1 } }
  if (program.end !== 'disconnect') yield { ...program, end: 'disconnect' }
}

// Halves first, then quarters, down to one at a time.
function* fewerSteps(program: Program): Generator<Program> {
  const { steps } = program
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < steps.length; at += size) yield { ...program, steps: [...steps.slice(0, at), ...steps.slice(at + size)] }
  }
}

function* simplerClients(clients: readonly ClientPlan[]): Generator<readonly ClientPlan[]> {
  for (let index = 0; index < clients.length; index++) {
    const plan = clients[index] as ClientPlan
    const using = (simpler: ClientPlan): readonly ClientPlan[] => clients.map((each, at) => (at === index ? simpler : each))
    for (const options of withoutOne(plan.options)) yield using({ ...plan, options })
    for (const key of ['auth', 'will', 'stableAfter', 'maxAttempts'] as const) {
      const { [key]: value, ...simpler } = plan
      if (value !== undefined) yield using(simpler)
    }
    if (plan.endpoints.length > 1)
      for (const name of plan.endpoints) yield using({ ...plan, endpoints: plan.endpoints.filter((each) => each !== name) })
  }
  if (clients.length > 1) yield clients.slice(0, -1)
}

function* withoutOne(options: Readonly<Record<string, unknown>>): Generator<Record<string, unknown>> {
  for (const [key, value] of Object.entries(options)) {
    const { [key]: _gone, ...rest } = options
    yield rest
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue
    for (const inner of withoutOne(value as Record<string, unknown>)) yield { ...options, [key]: inner }
  }
}

function* simplerSteps(step: Step): Generator<Step> {
  if (step.after > 0) yield { ...step, after: 0 }
  if (step.wait) yield { ...step, wait: false }
  for (const call of simplerCalls(step.call)) yield { ...step, call }
}

function* simplerCalls(call: Call): Generator<Call> {
  for (const key of ['signal', 'until', 'inside', 'does', 'forget'] as const) {
    if (!(key in call) || (call as unknown as Record<string, unknown>)[key] === undefined) continue
    const { [key as keyof Call]: _gone, ...rest } = call
    yield rest as Call
  }
  if ('options' in call) for (const options of withoutOne(call.options)) yield { ...call, options } as Call
  if ('size' in call && call.size !== 5) yield { ...call, size: 5 }
  if ('form' in call && call.form !== 'text') yield { ...call, form: 'text' }
  if ('filters' in call && call.filters.length > 1) for (const filter of call.filters) yield { ...call, filters: [filter] }
  if (call.call === 'subscribe' && Object.keys(call.reading).length > 1) yield { ...call, reading: { how: 'loop' } }
}
