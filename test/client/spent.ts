/**
 * How much work something was, for tests that must not take quadratic time. Work, not time: others may use the machine too.
 */
const { process } = globalThis as { readonly process?: { cpuUsage?(): { readonly user: number; readonly system: number } } }

/** Milliseconds of processor time of this process so far; in a browser, which does not tell, milliseconds gone by. */
export function spent(): number {
  const usage = process?.cpuUsage?.()
  return usage === undefined ? performance.now() : (usage.user + usage.system) / 1000
}
