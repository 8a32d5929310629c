/**
 * Typed subscriptions over memory, beside what one writes by hand and beside MQTT.js: the JSON workload, in turns.
 *
 * Settings: `mode` (`owned`, `listen`, `listen-owned`), `channels` (bound ones, of which one gets all messages, beside that one alone), and those of
 * `alternate`.
 */
import mqttjs from 'mqtt'
import * as mq from 'mqwire/typed'
import { deliverers } from '../workloads/delivering.js'
import { alternate, finish, settings, timed } from './rounds.js'

const { mode = 'owned', channels } = settings

/** A schema as libraries make them, at the least cost that one can have. */
const schema = {
  '~standard': {
    version: 1,
    vendor: 'bench',
    validate: (value) =>
      typeof value?.celsius === 'number' && typeof value.device === 'string'
        ? { value }
        : { issues: [{ message: 'no reading' }] },
  },
}

const channelOf = (client, codec) => mq.channel('plants/{hall}/level', codec).on(client)
const lifetime = mode === 'listen' ? 'borrowed' : 'owned'

async function looped(channel, count) {
  let left = count
  let work = 0
  for await (const { value, message } of await channel.subscribe()) {
    work += message.topic.length + value.size
    if (--left === 0) break
  }
  return work
}

function listened(channel, count) {
  let left = count
  let work = 0
  return new Promise((resolve, reject) => {
    const handler = ({ value, message }) => {
      work += message.topic.length + value.size
      if (--left === 0) resolve(work)
    }
    channel.listen(handler, { lifetime }).catch(reject)
  })
}

const tools = { mqttjs, timed }
const make = (more) => deliverers({ mode, name: 'json', read: 'json', ...more }, tools)
const typed = (codec, prepare) => {
  const consume = (client, { count }) =>
    (mode === 'owned' ? looped : listened)(channelOf(client, codec), count)
  return make({ consume, prepare }).mqwire
}

/** What an application does with the schema and without a library for it. */
function checked(payload) {
  const { value, issues } = schema['~standard'].validate(JSON.parse(payload.toString()))
  if (issues !== undefined) throw new Error(issues[0].message)
  return value.size
}

async function bindOthers(client) {
  for (let index = 1; index < channels; index++)
    await mq
      .channel(`other/${index}/{x}`, mq.json())
      .on(client)
      .listen(() => undefined)
}

const candidates =
  channels === undefined
    ? {
        'message.json()': make().mqwire,
        'typed json()': typed(mq.json()),
        'typed json(schema)': typed(mq.json(schema)),
        'MQTT.js, JSON.parse': make()['MQTT.js'],
        'MQTT.js, JSON.parse, schema': make({ read: checked })['MQTT.js'],
      }
    : { 'one channel': typed(mq.json()), 'all channels': typed(mq.json(), bindOthers) }
finish({ results: await alternate(candidates, settings) })
