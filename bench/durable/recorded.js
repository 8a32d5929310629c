/**
 * The batches that LevelDB is given, as they are: recorded while mqwire works, and written once more to a LevelDB of its own, one after the other.
 */
import { AbstractChainedBatch } from 'abstract-level'
import { ClassicLevel } from 'classic-level'

const { batch } = ClassicLevel.prototype
let recording

// The store of the package uses the same class.
ClassicLevel.prototype.batch = function recorded(...given) {
  if (given.length > 0) recording?.push(given[0])
  return batch.apply(this, given)
}

// Or fills a batch step by step.
const { put, del, write } = AbstractChainedBatch.prototype
const steps = new WeakMap()
const note = (chained, operation) => {
  if (recording === undefined) return
  const noted = steps.get(chained)
  if (noted === undefined) steps.set(chained, [operation])
  else noted.push(operation)
}
AbstractChainedBatch.prototype.put = function recorded(key, value) {
  note(this, { type: 'put', key, value })
  return put.call(this, key, value)
}
AbstractChainedBatch.prototype.del = function recorded(key) {
  note(this, { type: 'del', key })
  return del.call(this, key)
}
AbstractChainedBatch.prototype.write = function recorded(options) {
  recording?.push(steps.get(this))
  return write.call(this, options)
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
  const level = new ClassicLevel(place, {
    valueEncoding: 'view',
    compression: false,
    maxOpenFiles: 100,
  })
  await level.open()
  return level
}

/** Writes batches, one after the other, each an array. */
export async function replay(level, batches, sync) {
  for (const operations of batches) await batch.call(level, operations, { sync })
}

/** Writes batches, one after the other, each filled step by step: faster where values are small. */
export async function replayInSteps(level, batches, sync) {
  for (const operations of batches) {
    const chained = batch.call(level)
    for (const each of operations) {
      if (each.type === 'put') put.call(chained, each.key, each.value)
      else del.call(chained, each.key)
    }
    await write.call(chained, { sync })
  }
}
