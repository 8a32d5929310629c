/**
 * The promises of the documentation, as rules over a history: what a program may see whatever it does.
 *
 * A rule reads what was recorded and gives what was seen against what was promised. It must say nothing where the documentation leaves it open, so that
 * worlds that differ in timing and losses are judged by the same rules. Pure.
 */
import { Facts } from './facts.js'
import type { Finding, History } from './history.js'
import { checkCalls } from './model-calls.js'
import { checkLife } from './model-life.js'
import { checkPublishes } from './model-publishes.js'
import { checkSubscriptions } from './model-subscriptions.js'

/** How exactly a world keeps time. */
export interface Precision {
  /** Milliseconds that something at once may take. */
  readonly slack: number
}

/** Every rule. */
export type Report = (rule: string, detail: string) => void

/** What a history has against the client, what was reported while it ran included. */
export function judge(history: History, precision: Precision): readonly Finding[] {
  const findings: Finding[] = [...history.findings]
  const report: Report = (rule, detail) => findings.push({ rule, detail })
  const facts = new Facts(history)
  checkCalls(facts, precision, report)
  checkPublishes(facts, report)
  checkSubscriptions(facts, precision, report)
  checkLife(facts, precision, report)
  for (const left of history.left) report('leak', `${left} are left although every client is closed`)
  return findings
}
