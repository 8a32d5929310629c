/** The ordinary programs, in the order of the table. */
import { badLinks } from './bad-links.js'
import { churn } from './churn.js'
import { devices } from './devices.js'
import { ingest } from './ingest.js'
import { links } from './links.js'
import { payloads } from './payloads.js'
import { sharing } from './sharing.js'
import { spreading } from './spreading.js'
import type { Program } from './world.js'

export const programs: readonly Program[] = [
  ...ingest,
  ...devices,
  ...spreading,
  ...sharing,
  ...payloads,
  ...links,
  ...churn,
  ...badLinks,
]
