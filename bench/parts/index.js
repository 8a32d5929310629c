/**
 * All measurements, in the order of the report.
 *
 * A measurement is `{ part, rows, basic?, lacks?, run }`: `rows` maps names to targets (`{ target, atLeast | atMost, stretch, unit }`, or `{}` for a
 * figure without one), `run(context)` gives `{ [name]: { ratio, mqwire, peer, … } }` or `{ skipped: reason }` for each, and `lacks(context)` says what is
 * missing here. `basic` ones make up the quick run. A result with a `point` belongs to a curve.
 */
import { brokers } from './brokers.js'
import { browser } from './browser.js'
import { codec } from './codec.js'
import { delivery } from './delivery.js'
import { durable } from './durable.js'
import { growth } from './growth.js'
import { idle } from './idle.js'
import { memory } from './memory.js'
import { native } from './native.js'
import { profiles } from './profiles.js'
import { routing } from './routing.js'
import { sockets } from './sockets.js'
import { versusOthers } from './versus.js'

export const measurements = [
  ...codec,
  ...routing,
  ...delivery,
  ...sockets,
  ...idle,
  ...durable,
  ...brokers,
  ...memory,
  ...native,
  ...versusOthers,
  ...growth,
  ...browser,
  ...profiles,
]
