/**
 * How many bytes some work allocates, whether or not they are collected meanwhile. Wants `--expose-gc`.
 */
import { GCProfiler } from 'node:v8'

/** `{ heap, external, collections }`: bytes allocated on the heap, bytes of array buffers made, and how often the collector ran. */
export async function allocated(work) {
  globalThis.gc()
  const profiler = new GCProfiler()
  profiler.start()
  const before = process.memoryUsage()
  await work()
  const after = process.memoryUsage()
  const { statistics } = profiler.stop()
  let heap = after.heapUsed - before.heapUsed
  let external = after.external - before.external
  for (const { beforeGC, afterGC } of statistics) {
    heap += beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize
    external += beforeGC.heapStatistics.externalMemory - afterGC.heapStatistics.externalMemory
  }
  return { heap, external, collections: statistics.length }
}
