/** What brokers do with the messages of a member that leaves its group is what the guide says, on the brokers that are quick to be had. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { checkShares } from './shares-check.js'
import { tableOfShares } from './shares-known.js'

it('the guide has the table', () => {
  const guide = readFileSync(new URL('../../docs/many.md', import.meta.url), 'utf8')
  expect(guide).toContain(tableOfShares().join('\n'))
})

for (const name of ['mosquitto', 'mochi', 'MemoryBroker'] as const) await checkShares(name)
