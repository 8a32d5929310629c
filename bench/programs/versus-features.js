/**
 * What one client does when something happens that happens to every client: each question is asked on the wire, of a scripted server, with the client's
 * own defaults. Settings: `name`. Prints an object with an answer to each question; an answer that could not be had is the reason.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { adapters } from './versus-adapters.js'
import { scripted } from './versus-server.js'

const { name } = JSON.parse(process.argv[2] ?? '{}')
const { open, versions } = adapters[name]
const version = versions[0]
const silent = { publish: () => undefined }
const text = new TextEncoder()

process.on('uncaughtException', () => undefined)
process.on('unhandledRejection', () => undefined)

/** Opens a client at a server of its own, asks, and closes both. */
async function asked({ server: settings, options = {}, ask }) {
  const server = await scripted(settings)
  let client
  try {
    client = await within(open(server.urls, { version, ...options }), 5000)
    return await ask(client, server)
  } finally {
    server.close()
    await Promise.race([closed(client), sleep(500)])
  }
}

/** Some throw when there is no connection to close. */
const closed = async (client) => {
  try {
    await client?.close()
  } catch {}
}

function within(promise, milliseconds) {
  return Promise.race([
    promise,
    sleep(milliseconds).then(() => Promise.reject(new Error(`nothing within ${milliseconds} ms`))),
  ])
}

async function until(condition, milliseconds) {
  for (let waited = 0; waited < milliseconds; waited += 20) {
    if (condition()) return true
    await sleep(20)
  }
  return false
}

/** How something given to the client ended, so far. */
function watched(promise) {
  const seen = { state: 'pending' }
  promise.then(
    () => (seen.state = 'fulfilled'),
    () => (seen.state = 'rejected'),
  )
  return seen
}

const given = (call) => {
  try {
    return watched(Promise.resolve(call()))
  } catch {
    return { state: 'rejected' }
  }
}

/** Milliseconds between attempts, of a client whose connection is lost and that cannot get another one. */
async function delays() {
  const server = await scripted({
    answers: {
      connect: (packet, link) => (link.number <= 2 ? undefined : link.socket.destroy(packet)),
    },
  })
  const times = [[], []]
  const ids = new Map()
  try {
    server.packets.push = function push(packet) {
      if (packet.type === 'connect') {
        if (!ids.has(packet.clientId)) ids.set(packet.clientId, ids.size)
        times[ids.get(packet.clientId)]?.push(packet.at)
        if (packet.link.number <= 2) setTimeout(() => packet.link.send({ type: 'connack' }), 10)
      }
      return Array.prototype.push.call(this, packet)
    }
    const both = await Promise.all([open(server.urls, { version }), open(server.urls, { version })])
    await sleep(200)
    for (const each of times) each.splice(0, each.length, performance.now())
    server.cut()
    await sleep(25_000)
    for (const client of both) void closed(client)
    return times.map((each) => each.slice(1).map((time, index) => Math.round(time - each[index])))
  } finally {
    server.close()
  }
}

const questions = {
  /** Protocol levels that it speaks. */
  async versions() {
    const spoken = []
    for (const version of versions) {
      const level = await asked({
        server: {},
        options: { version },
        ask: (_client, server) => server.of('connect')[0]?.protocolVersion,
      })
      if (level === version) spoken.push(version === 5 ? '5.0' : '3.1.1')
    }
    return spoken
  },

  /** A handler takes half a second: is the message acknowledged before it is done? */
  acknowledgesWhenDone: () =>
    asked({
      server: {},
      async ask(client, server) {
        await client.subscribe('a', () => sleep(500))
        const sent = performance.now()
        server.links[0].send({
          type: 'publish',
          topic: 'a',
          payload: text.encode('x'),
          qos: 1,
          packetId: 7,
        })
        if (!(await until(() => server.of('puback').length > 0, 3000))) return 'never'
        return server.of('puback')[0].at - sent > 400
      },
    }),

  /** The server takes one at a time, and acknowledges nothing: how many of five publishes leave? */
  keepsToReceiveMaximum: () =>
    asked({
      server: { answers: silent, properties: { receiveMaximum: 1 } },
      async ask(client, server) {
        for (let count = 0; count < 5; count++) given(() => client.publish('a', `message ${count}`))
        await sleep(1000)
        return server.of('publish').length === 1
      },
    }),

  /** The server takes 200 bytes: does a publish of 1,000 reject, and stay here? */
  keepsToMaximumPacketSize: () =>
    asked({
      server: { properties: { maximumPacketSize: 200 } },
      async ask(client, server) {
        const seen = given(() => client.publish('a', 'x'.repeat(1000)))
        await sleep(1000)
        return server.of('publish').length === 0 && seen.state === 'rejected'
      },
    }),

  /** Can messages be read with `for await`? */
  iterates: () =>
    asked({
      server: {},
      ask: async (client) =>
        (await client.readers('a')).some((each) => Symbol.asyncIterator in Object(each)),
    }),

  /** The connection breaks after PUBLISH and before PUBACK, and the server keeps the session: is it sent again, and marked as a repeat? */
  resends: () =>
    asked({
      server: {
        answers: {
          publish: ({ packetId }, link) =>
            link.number === 1 ? link.socket.destroy() : link.send({ type: 'puback', packetId }),
        },
      },
      options: { kept: true },
      async ask(client, server) {
        given(() => client.publish('a', 'x'))
        const repeat = () => server.of('publish').find(({ link }) => link.number > 1)
        if (!(await until(() => repeat() !== undefined, 15_000))) return 'no'
        return repeat().dup ? 'with DUP' : 'without DUP'
      },
    }),

  /** The connection is gone for good: 30,000 publishes at QoS 1. How many are refused or given up? */
  boundsItsQueue: () =>
    asked({
      server: {
        answers: {
          connect: (_packet, link) =>
            link.number === 1 ? link.send({ type: 'connack' }) : link.socket.destroy(),
        },
      },
      async ask(client, server) {
        server.cut()
        await sleep(300)
        const seen = Array.from({ length: 30_000 }, () => given(() => client.publish('a', 'x')))
        await sleep(1500)
        const refused = seen.filter(({ state }) => state === 'rejected').length
        return refused === seen.length ? 'refuses all' : refused > 0 ? 'bounded' : 'unbounded'
      },
    }),

  /** The server sends a topic that is no UTF-8, which the standard forbids: does the handler get it? */
  refusesMalformed: () =>
    asked({
      server: {},
      async ask(client, server) {
        let got = 0
        await client.subscribe('#', () => got++)
        const block = version === 5 ? [0] : []
        server.links[0].raw(Uint8Array.of(0x30, 5 + block.length, 0, 2, 0xc3, 0x28, ...block, 0x78))
        const ended = await until(
          () => server.links[0].socket.destroyed || server.links[0].socket.readableEnded,
          2000,
        )
        return got === 0 && ended
      },
    }),

  /** Another client took the session over (DISCONNECT 0x8E): does it come back and throw that one out? */
  stopsWhenTakenOver: () =>
    version === 4
      ? undefined
      : asked({
          server: {},
          async ask(_client, server) {
            server.links[0].send({ type: 'disconnect', reasonCode: 0x8e })
            server.links[0].socket.end()
            await sleep(8000)
            return server.links.length === 1
          },
        }),

  delays,
}

const answers = {}
for (const [question, ask] of Object.entries(questions)) {
  try {
    answers[question] = await ask()
  } catch (error) {
    answers[question] = `no answer: ${error.message}`
  }
}
process.stdout.write(`${JSON.stringify({ answers })}\n`, () => process.exit(0))
