/**
 * Delivery without sockets, in turns. Settings: `mode`, `name` of a workload, `clients` (so many receive each message), and those of `alternate`.
 */
import mqttjs from 'mqtt'
import { deliverers } from '../workloads/delivering.js'
import { alternate, finish, settings, timed } from './rounds.js'

finish({ results: await alternate(deliverers(settings, { mqttjs, timed }), settings) })
