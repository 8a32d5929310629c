/**
 * How far the queue of the publish box has come: a bar, and the figures of its status.
 */
import { short, size } from '../model/payload.js'
import { byId, setText } from './dom.js'

/** A status of a queue as text. */
export function progressText({ pending, inFlight, bytes, delivered, lost, rate, timeLeft }) {
  const parts = [
    `${short(pending)} pending`,
    `${short(inFlight)} in flight`,
    size(bytes),
    `${rate.toFixed(1)}/s`,
  ]
  if (pending > 0 && timeLeft !== undefined) parts.push(`${Math.ceil(timeLeft / 1000)} s left`)
  parts.push(`${short(delivered)} delivered`)
  if (lost > 0) parts.push(`${short(lost)} given up`)
  return parts.join(', ')
}

/** Shows a status; without one there is no queue, and nothing to be seen. */
export function showQueue(status) {
  const element = byId('queue')
  element.hidden = status === undefined
  if (status === undefined) return
  const { pending, delivered } = status
  const [bar, text] = element.children
  bar.max = Math.max(1, pending + delivered)
  bar.value = delivered
  setText(text, progressText(status))
}
