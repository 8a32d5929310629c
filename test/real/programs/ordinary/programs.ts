/** The ordinary programs, in the order of the table. */
import { badLinks } from './scripts/bad-links.js'
import { churn } from './scripts/churn.js'
import { devices } from './scripts/devices.js'
import { ingest } from './scripts/ingest.js'
import { links } from './scripts/links.js'
import { payloads } from './scripts/payloads.js'
import { sharing } from './scripts/sharing.js'
import { spreading } from './scripts/spreading.js'
import { throughput } from './scripts/throughput.js'
import type { Program } from './world.js'

export const programs: readonly Program[] = [
  ...ingest,
  ...devices,
  ...spreading,
  ...sharing,
  ...payloads,
  ...links,
  ...churn,
  ...throughput,
  ...badLinks,
]
