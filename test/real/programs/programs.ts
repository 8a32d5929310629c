/** The ordinary programs, in the order of the table. */
import { ingest, sharing } from './consumers.js'
import { badLinks, links } from './links.js'
import { churn, devices, payloads, spreading } from './traffic.js'
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
