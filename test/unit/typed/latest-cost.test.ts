/** What latest values cost: four times as many, at most six times the work. Work is counted, not timed. */

import { turn } from '../../support/pausing.js'
import { costsEvenly, type Row } from '../client/cost-worlds.js'
import { level, subscriber } from './rig.js'

/** Latest values of at most so many topics, which have come once. */
async function filled(count: number) {
  const from = subscriber()
  const latest = await level.on(from.client).latest({}, { limit: count }).ready
  for (let id = 0; id < count; id++) from.give(id, 0)
  return { from, latest }
}

const rows: Readonly<Record<string, Row>> = {
  async 'a snapshot for each change'(count) {
    const { from, latest } = await filled(count)
    return async () => {
      for (let id = 0; id < count; id++) {
        from.give(id, 1)
        if (latest.getSnapshot().get(`tank/${id}/level`)?.value !== 1)
          throw new Error('an old snapshot')
      }
    }
  },
  async 'a reader that is behind'(count) {
    const from = subscriber()
    const latest = await level.on(from.client).latest({}, { limit: count }).ready
    const changes = latest.changes()
    return async () => {
      for (let id = 0; id < count; id++) from.give(id, 0)
      for (let id = 0; id < count; id++) await changes.next()
    }
  },
  async 'topics that make room for others'(count) {
    const { from, latest } = await filled(count)
    return async () => {
      for (let id = count; id < count * 3; id++) from.give(id, 0)
      if (latest.size !== count) throw new Error(`${latest.size} topics`)
    }
  },
  async 'topics that come and go'(count) {
    const { from, latest } = await filled(count)
    return async () => {
      for (let id = 0; id < count; id++) {
        from.give(id, undefined)
        latest.getSnapshot()
        from.give(count + id, 1)
      }
    }
  },
  async 'connections that come again'(count) {
    const { from, latest } = await filled(count)
    const changes = latest.changes()
    return async () => {
      for (let time = 0; time < 30; time++) {
        from.connect()
        await turn()
      }
      for (let id = 0; id < count; id++) await changes.next()
    }
  },
}

costsEvenly('latest values', rows)
