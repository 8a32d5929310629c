/**
 * Nanoseconds of processor time per message of clients with few and many filters, in turns. Settings: `names` of scenes, `churn`, `rounds`, `count`.
 */
import { median } from '../statistics.js'
import { router, scenes } from '../workloads/routing.js'
import { finish, settings, timed } from './rounds.js'

const { names, churn = false, rounds = 25, count = 100_000 } = settings
const entries = []
for (const name of names) entries.push({ name, times: [], ...(await router(scenes[name](), { churn })) })
for (let warm = 0; warm < 4; warm++) for (const { run } of entries) await run(count)
for (let round = 0; round < rounds; round++) {
  for (const { run, times } of entries) {
    let done = count
    const { user, system } = await timed(async () => {
      done = await run(count)
    })
    times.push(((user + system) / done) * 1e9)
  }
}
// The least of the rounds: what disturbs only ever adds, and a difference shows all of it.
const [base, ...others] = entries
const least = ({ times }) => Math.min(...times)
const more = Object.fromEntries(others.map((entry) => [entry.name, least(entry) - least(base)]))
finish({ more, nanoseconds: Object.fromEntries(entries.map(({ name, times }) => [name, median(times)])) })
