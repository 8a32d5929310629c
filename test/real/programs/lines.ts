/** What cells showed, in lines. */
import { verdictOf } from './expectations.js'
import type { Result } from './run.js'

function sums(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, times]) => `${times} × ${what}`)
    .join('; ')
}

const marks = { passes: 'ok  ', fails: 'FAIL', broker: 'brkr', absent: 'none' } as const

/** One cell in a few lines. */
export function lineOf(result: Result): string {
  const { program, broker, transport, window, figures, seen } = result
  const verdict = verdictOf(result)
  const where = `${broker} ${transport} window ${window ?? 'default'}`
  const counts = `sent ${figures.sent}, delivered ${figures.delivered}/${figures.due}, lost ${figures.lost}, twice ${figures.twice}, connections ${figures.connections}`
  const measured = Object.entries(figures.measured ?? {}).map(
    ([what, value]) => ` · ${what} ${value}`,
  )
  const lines = [
    `${marks[verdict.word]} ${program} · ${where} · ${counts} · ${figures.milliseconds} ms${measured.join('')}`,
  ]
  if ('reason' in verdict) lines.push(`       ${verdict.reason}`)
  if (figures.failures.length > 0) {
    lines.push(...figures.failures.slice(0, 6).map((failure) => `       ${failure}`))
    lines.push(
      `       by us ${sums(figures.endedByUs) || 'none'} | by peer ${sums(figures.endedByPeer) || 'none'}`,
      `       wire: ${JSON.stringify(seen)}`,
    )
  }
  return lines.join('\n')
}
