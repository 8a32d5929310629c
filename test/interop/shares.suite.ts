/** What brokers in Java do with the messages of a member that leaves its group. Not part of `npm test`: `npm run interop:all`. */
import { expect, it } from 'vitest'
import { connect } from '../../src/client/node.js'
import { site } from '../programs/ordinary/sites.js'
import { checkShares } from './shares-check.js'

for (const name of ['HiveMQ CE', 'Artemis'] as const) await checkShares(name)

it('HiveMQ CE takes a group from its members when UNSUBSCRIBE comes from a client that is none: so nothing of mqwire unsubscribes twice', async (context) => {
  const made = await site('HiveMQ CE')
  if ('missing' in made) return context.skip(made.missing)
  const broker = await made.start('roomy')
  const url = broker.urls.TCP as string
  const [reader, other] = [await connect(url), await connect(url)]
  const jobs = await reader.subscribe('$share/g/jobs', { qos: 1 })
  await other.publish('jobs', 'before', { qos: 1 })
  expect((await jobs.next({ timeout: 10_000 }))?.text()).toBe('before')
  await other.unsubscribe('$share/g/jobs')
  await other.publish('jobs', 'after', { qos: 1 })
  await expect(jobs.next({ timeout: 2000 })).rejects.toMatchObject({ code: 'ERR_TIMEOUT' })
  for (const client of [reader, other]) client.destroy()
  await broker.stop()
})
