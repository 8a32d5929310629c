/**
 * Nanoseconds of processor time per message of clients with few and many filters, in turns. Settings: `names` of scenes, `churn`, `rounds`, `count`.
 * With `topics` instead of `names` mqwire beside MQTT.js: messages over so many topics, and with `filters` a filter and a handler for each; `lifetime`, `only`.
 */
import mqttjs from 'mqtt'
import { compareAsync } from '../compare.js'
import { median } from '../statistics.js'
import { router, routers, scenes } from '../workloads/routing.js'
import { finish, processorClock, settings } from './rounds.js'

const { names = [], topics, churn = false, rounds = 25, warmUp = 4, count = 100_000 } = settings
const candidates = topics === undefined ? {} : await routers(settings, mqttjs)
for (const name of names) candidates[name] = (await router(scenes[name](), { churn })).run
const times = await compareAsync(candidates, { rounds, warmUp, count, clock: processorClock })
// The least of the rounds: what disturbs only ever adds, and a difference shows all of it.
const least = (name) => Math.min(...times[name])
const [base, ...others] = names
const more = Object.fromEntries(others.map((name) => [name, least(name) - least(base)]))
const medians = Object.entries(times).map(([name, each]) => [name, median(each)])
finish({ more, nanoseconds: Object.fromEntries(medians) })
