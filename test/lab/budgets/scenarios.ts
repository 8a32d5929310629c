/**
 * Every attack of the budget tests, in the order of the rows.
 */
import type { Scenario } from './scenario.js'
import { application } from './scenarios/application.js'
import { floods } from './scenarios/flood.js'
import { links } from './scenarios/links.js'
import { size } from './scenarios/size.js'
import { tables } from './scenarios/tables.js'

const all: readonly Scenario[] = [...size, ...floods, ...tables, ...links, ...application]

export const scenarios: readonly Scenario[] = [...all].sort((first, second) =>
  first.row.localeCompare(second.row),
)
