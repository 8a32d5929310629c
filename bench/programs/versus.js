/**
 * One job with several clients in turns, in one process. Settings: `url`, `job` (`receive`, `send0`, `send1`), `names`, and those of `alternate`.
 */
import { alternate, finish, settings, timed } from './rounds.js'
import { opened } from './versus-clients.js'

const { url, job, names, size = 256, window = 100 } = settings
const payload = Buffer.alloc(size, 'x')
const topics = Array.from(
  { length: 100 },
  (_, index) => `plants/hall-${String(index).padStart(2, '0')}/level`,
)

const jobs = {
  async receive(client, count) {
    const work = await client.receive(['plants/#', `N${count}/${size}/0`], count)
    if (work !== count * (20 + size)) throw new Error(`${work} bytes were counted`)
  },
  send0: (client, count) => client.send0(topics, payload, count),
  send1: (client, count) => client.send1(topics, payload, count, window),
}

async function run(name, count) {
  const client = await opened[name](url)
  const time = await timed(() => jobs[job](client, count))
  await client.close()
  return time
}

/** Why a client cannot do the job; undefined when it can. */
async function objection(name) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error('it does not get done')), 5000).unref()
  })
  try {
    await Promise.race([run(name, 300), late])
    return undefined
  } catch (error) {
    return error.message
  }
}

process.on('uncaughtException', () => undefined)
process.on('unhandledRejection', () => undefined)
const objections = {}
const able = []
for (const name of names) {
  const reason = await objection(name)
  if (reason === undefined) able.push(name)
  else objections[name] = reason
}
const candidates = Object.fromEntries(able.map((name) => [name, (count) => run(name, count)]))
finish({ results: await alternate(candidates, settings), objections })
