/** The faults that the enumeration tries at every step of a scenario. */
import type { Fault, Schedule } from './schedule.js'

type Kind = Omit<Fault, 'step' | 'at'>

const everywhere: readonly Kind[] = [
  { kind: 'reset' },
  { kind: 'end' },
  { kind: 'restart-keep', k: 0 },
  { kind: 'restart-keep', k: 2500 },
  { kind: 'restart-lose', k: 0 },
  { kind: 'refuse-dial' },
  { kind: 'connack-89' },
]

/** Tried where bytes are under way or about to be. */
const onTheWire: readonly Kind[] = [
  { kind: 'cut-up', k: 1 },
  { kind: 'cut-up', k: 7 },
  { kind: 'cut-down', k: 1 },
  { kind: 'cut-down', k: 3 },
  { kind: 'drop-packet', k: 0 },
  { kind: 'double-packet', k: 0 },
  { kind: 'delay-packet', k: 0 },
  { kind: 'server-busy' },
]

/** Tried at every fourth step: they take long, and a step earlier or later makes little difference. */
const sometimes: readonly Kind[] = [
  { kind: 'stall', k: 60_000 },
  { kind: 'stall-up', k: 8000 },
  { kind: 'stall-down', k: 60_000 },
  { kind: 'hang-dial' },
  { kind: 'connack-88' },
  { kind: 'restart-lose', k: 2500 },
  { kind: 'takeover' },
  { kind: 'jump', k: 3_600_000 },
]

/** One schedule for each fault at each step that the scenario had without any. */
export function* singleFaults(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (const [step, name] of steps.entries()) {
    for (const fault of everywhere) yield { ...scenario, faults: [{ ...fault, step }] }
    if (name === 'up' || name === 'down' || name === 'op')
      for (const fault of onTheWire) yield { ...scenario, faults: [{ ...fault, step }] }
    if (step % 4 === 0)
      for (const fault of sometimes) yield { ...scenario, faults: [{ ...fault, step }] }
  }
}

/** A reset at every step: what finds most, and fast. */
export function* resets(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (let step = 0; step < steps.length; step++)
    yield { ...scenario, faults: [{ kind: 'reset', step }] }
}

const paired: readonly Kind[] = [
  { kind: 'reset' },
  { kind: 'restart-lose', k: 0 },
  { kind: 'cut-down', k: 3 },
]

/** Two faults: the second so many steps after the first, where the client has just begun to recover. */
export function* faultPairs(scenario: Schedule, steps: readonly string[]): Generator<Schedule> {
  for (let step = 0; step < steps.length; step += 1) {
    for (const first of paired) {
      for (const second of paired) {
        for (const gap of [1, 2, 4, 7, 11, 16]) {
          const later = { ...second, step: step + gap }
          yield { ...scenario, faults: [{ ...first, step }, later] }
        }
      }
    }
  }
}
