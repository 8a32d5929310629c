/**
 * Nanoseconds of processor time per message of clients with few and many filters, in turns. Settings: `names` of scenes, `churn`, `rounds`, `count`.
 */
import { compareAsync } from '../compare.js'
import { median } from '../statistics.js'
import { router, scenes } from '../workloads/routing.js'
import { finish, processorClock, settings } from './rounds.js'

const { names, churn = false, rounds = 25, count = 100_000 } = settings
const candidates = {}
for (const name of names) candidates[name] = (await router(scenes[name](), { churn })).run
const times = await compareAsync(candidates, { rounds, warmUp: 4, count, clock: processorClock })
// The least of the rounds: what disturbs only ever adds, and a difference shows all of it.
const least = (name) => Math.min(...times[name])
const [base, ...others] = names
const more = Object.fromEntries(others.map((name) => [name, least(name) - least(base)]))
finish({ more, nanoseconds: Object.fromEntries(names.map((name) => [name, median(times[name])])) })
