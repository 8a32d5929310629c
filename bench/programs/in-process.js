/**
 * Delivery without sockets, in turns. Settings: `mode`, `name` of a workload, `only`, and those of `alternate`.
 */
import mqttjs from 'mqtt'
import { deliverers } from '../workloads/delivering.js'
import { alternate, finish, settings, timed } from './rounds.js'

const candidates = deliverers(settings, { mqttjs, timed })
const { only } = settings
if (only !== undefined)
  for (const name of Object.keys(candidates)) if (name !== only) delete candidates[name]
finish({ results: await alternate(candidates, settings) })
