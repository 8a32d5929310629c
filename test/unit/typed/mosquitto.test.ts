/** Typed topics through mosquitto, on MQTT 5.0 and 3.1.1, while connections are made again; operations and streams that a program in Python and paho-mqtt answers. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import * as mq from '../../../src/typed/index.js'
import { type Broker, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { ProcessBroker } from '../../real/process-broker.js'
import { eventually } from '../../real/waiting.js'
import { all, coded, outcomeOf, upTo } from './rig.js'

withMosquitto(['TCP'], (transport) => {
  describe.each([5, 4] as const)('through mosquitto, MQTT version %d', (protocolVersion) => {
    let broker: Broker
    const open: Client[] = []
    beforeAll(async () => {
      broker = await startMosquitto()
    })
    afterAll(() => broker.stop())
    afterEach(async () => {
      for (const client of open.splice(0)) await client.destroy()
    })
    const connected = async (): Promise<Client> => {
      const client = new Client(
        { url: broker.urls[transport] as string },
        { protocolVersion, reconnect: { backoff: () => 20 } },
      )
      open.push(client)
      await client.connect()
      return client
    }

    it('latest values have a limit, and are confirmed after a reconnect', async () => {
      const [reading, sending] = [await connected(), await connected()]
      const level = mq.channel('plant/{line}/{n:number}', mq.json<{ v: number }>(), {
        qos: 1,
        retain: true,
      })
      for (let n = 0; n < 20; n++) await level.on(sending).publish({ line: 'x', n }, { v: n })
      const latest = await level.on(reading).latest({ line: 'x' }, { limit: 15 }).ready
      await eventually(() => latest.size === 15)
      await sending.publish('plant/x/03', '{', { qos: 1 })
      await level.on(sending).clear({ line: 'x', n: 19 })
      await eventually(() => !latest.has('plant/x/19') && latest.invalid === 1)
      await reading.reconnect({ force: true })
      await eventually(
        () => latest.size === 15 && [...latest.values()].every(({ stale }) => !stale),
        'each confirmed',
      )
      expect(await all(mq.retained(sending, 'plant/#'))).toHaveLength(19)
    })

    if (protocolVersion === 5)
      it('streams side by side survive connections of their caller that are made anew', async () => {
        const [serving, asking] = [await connected(), await connected()]
        const counting = mq.operation('count/{id}', mq.number(), mq.number())
        await counting.on(serving).serve(async function* ({ value }) {
          for (let n = 0; n < value; n++) yield n
        })
        const read = async (id: number): Promise<number[]> => {
          const got: number[] = []
          for await (const n of counting.on(asking).stream({ id }, 100, { timeout: 5000 })) {
            got.push(n)
            if (n === 20 * id) asking.reconnect({ force: true }).catch(() => undefined)
          }
          return got
        }
        expect(await Promise.all([1, 2, 3, 4].map(read))).toEqual(Array(4).fill(upTo(100)))
      }, 20_000)
  })
})

const script = fileURLToPath(new URL('foreign/responder.py', import.meta.url))

/** A Python that has paho-mqtt: Debian's, or whichever comes first. */
const python = ['/usr/bin/python3', 'python3'].find((command) => {
  try {
    execFileSync(command, ['-c', 'import paho.mqtt.properties'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

interface Job {
  readonly fail?: string
}

/** What the responder says of a stream that is over. */
interface Over {
  readonly how: 'ended' | 'cancelled' | 'starved'
  readonly given: number
  readonly said: readonly string[]
}

const jobs = mq.operation('jobs/{n:number}', mq.json<Job>(), mq.json<number>())

// Where it is missing the tests fail in CI; elsewhere the reason is printed and they are left out.
function withPython(define: (command: string) => void): void {
  if (python !== undefined) return define(python)
  console.warn('The tests with a Python responder are left out: there is no python3 with paho-mqtt')
  it('python3 with paho-mqtt not found', () => expect(process.env['CI']).toBeUndefined())
}

withPython((command) =>
  withMosquitto(['TCP'], (transport) => {
    describe('a responder in Python', () => {
      let broker: Broker
      let responder: ProcessBroker
      let client: Client

      beforeAll(async () => {
        broker = await startMosquitto()
        const { hostname, port } = new URL(broker.urls[transport] ?? '')
        const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-python-'))
        const parameters = ['-u', script, hostname, port]
        responder = new ProcessBroker({
          name: 'the responder',
          command,
          parameters,
          folder,
          urls: {},
          doors: [],
          ready: 'ready',
        })
        await responder.live()
        client = new Client(broker.urls[transport] ?? '')
        await client.connect()
      })
      afterAll(async () => {
        await client?.disconnect()
        await responder?.stop()
        await broker?.stop()
      })

      /** The streams that are over, oldest first. */
      const over = (): Over[] =>
        responder.log
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line) as Over)

      /** What became of the next stream that a test asks for. */
      async function overOf(ask: () => Promise<void>): Promise<Over> {
        const before = over().length
        await ask()
        await eventually(() => over().length > before, 'the end of the stream')
        return over()[before] as Over
      }

      const stream = (n: number, window: number, job: Job = {}) =>
        jobs.on(client).stream({ n }, job, { timeout: 5000, window })
      const jammed = coded('ERR_REMOTE', { reasonName: 'JAMMED', message: 'as asked' })

      it('answers a call', async () => {
        expect(await jobs.on(client).call({ n: 42 }, {}, { timeout: 5000 })).toBe(42)
        expect(
          await Promise.all(
            [1, 2, 3].map((n) => jobs.on(client).call({ n }, {}, { qos: 1, timeout: 5000 })),
          ),
        ).toEqual([1, 2, 3])
      })

      it.each([0, 1, 3])('streams %d answers, which need no credit', async (n) => {
        const over = await overOf(async () => expect(await all(stream(n, 8))).toEqual(upTo(n)))
        expect(over).toMatchObject({ how: 'ended', given: n, said: [] })
      })

      it('streams on credit: how many answers may come in all', async () => {
        const { how, given, said } = await overOf(async () =>
          expect(await all(stream(50, 4))).toEqual(upTo(50)),
        )
        expect([how, given]).toEqual(['ended', 50])
        // Half a window at a time; what comes behind the last answer may be heard or not.
        const credit = upTo(25).map((index) => String(6 + 2 * index))
        expect(said.length).toBeGreaterThanOrEqual(23)
        expect(credit.slice(0, said.length)).toEqual(said)
      })

      it('ends a stream with an error behind its answers', async () => {
        const got: number[] = []
        expect(await outcomeOf(all(stream(3, 8, { fail: 'JAMMED' }), got))).toEqual(jammed)
        expect(got).toEqual([0, 1, 2])
      })

      it('streams on after the connection of the caller was lost', async () => {
        const got: number[] = []
        for await (const n of stream(60, 4)) {
          got.push(n)
          if (n === 20) await client.reconnect({ force: true })
        }
        expect(got).toEqual(upTo(60))
      })
    })
  }),
)
