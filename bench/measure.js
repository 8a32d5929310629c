/**
 * What was measured on, in one line.
 */
import { cpus, loadavg, totalmem } from 'node:os'

/** Processor, memory, Node and load. */
export function machine() {
  const all = cpus()
  const load = loadavg()[0].toFixed(1)
  return `${all.length} × ${all[0]?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, load ${load}`
}
