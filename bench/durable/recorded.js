/**
 * The batches that LevelDB is given, as they are: recorded while mqwire works, and written once more to a LevelDB of its own, one after the other.
 */
import { ClassicLevel } from 'classic-level'

const { batch } = ClassicLevel.prototype
let recording

// The store of the package uses the same class.
ClassicLevel.prototype.batch = function recorded(operations, options) {
  recording?.push(operations)
  return batch.call(this, operations, options)
}

/** What `work` gives, and the batches that were written meanwhile. */
export async function recorded(work) {
  recording = []
  try {
    return { result: await work(), batches: recording }
  } finally {
    recording = undefined
  }
}

/** A LevelDB as the store of the package sets it up, without that store. */
export async function bareLevel(place) {
  const level = new ClassicLevel(place, { valueEncoding: 'view', compression: false, maxOpenFiles: 100 })
  await level.open()
  return level
}

/** Writes batches, one after the other. */
export async function replay(level, batches, sync) {
  for (const operations of batches) await batch.call(level, operations, { sync })
}
