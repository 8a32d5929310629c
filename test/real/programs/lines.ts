/** What cells showed, in lines. */
import { verdictOf } from './expectations.js'
import type { Result } from './run.js'

function sums(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, times]) => `${times} × ${what}`)
    .join('; ')
}

/** What the wire showed, as far as it is worth a word. */
function wireOf({ seen }: Result): string {
  if (seen.connections === 0) return ''
  const parts = [
    `down ${seen.down}+${seen.downDup} settled ${seen.downSettled} q0 ${seen.downZero}`,
    `up ${seen.up}+${seen.upDup} settled ${seen.upSettled}`,
  ]
  parts.push(
    `open ≤ ${seen.mostOpen}${seen.announced > 0 ? ` of ${seen.announced}` : ''}, left ${seen.leftOpen} (${seen.leftToBroker} to the broker)`,
  )
  if (seen.exceeded > 0) parts.push(`exceeded on ${seen.exceeded} connections`)
  if (Object.keys(seen.clientSaid).length > 0)
    parts.push(`client's DISCONNECT ${sums(seen.clientSaid)}`)
  if (Object.keys(seen.brokerSaid).length > 0)
    parts.push(`broker's DISCONNECT ${sums(seen.brokerSaid)}`)
  parts.push(`ended first by client ${seen.endedByClient}, by broker ${seen.endedByBroker}`)
  if (Object.keys(seen.odd).length > 0) parts.push(`broker ${sums(seen.odd)}`)
  return parts.join(', ')
}

const marks = { passes: 'ok  ', fails: 'FAIL', broker: 'brkr', absent: 'none' } as const

/** One cell in a few lines. */
export function lineOf(result: Result): string {
  const { program, broker, transport, window, figures } = result
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
      `       wire: ${wireOf(result)}`,
    )
  }
  return lines.join('\n')
}
