/**
 * Faults on purpose: which messages are lost or repeated on the way, so that one can see the check fail.
 *
 * The embedded broker asks it; with a foreign broker, which cannot be told to misbehave, the devices do.
 */

/** Decides for one message after the other: `lose(qos)` and `repeat(qos)` are true for every Nth of that QoS; 0 is never. */
export function makeFaults({ loseEvery, repeatEvery }) {
  return { lose: everyNth(loseEvery), repeat: everyNth(repeatEvery) }
}

function everyNth(n) {
  const counts = [0, 0, 0]
  return (qos) => {
    counts[qos] += 1
    return n > 0 && counts[qos] % n === 0
  }
}
