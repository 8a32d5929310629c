/** An at-least-once service that is stopped, killed and started again, while jobs go on coming: none is lost. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { requireDist } from '../../package/fixture.js'
import { withMosquitto } from '../brokers.js'
import { Restartable } from '../restartable.js'
import { eventually, sequence, within } from '../waiting.js'
import { Program } from './program.js'

const jobs = 600

beforeAll(requireDist)

withMosquitto(['TCP'], () => {
  let broker: Restartable
  let producer: Client
  let folder: string
  const running: Program[] = []
  let sent = 0

  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
    broker = await Restartable.start({ memory: 'most of it' })
    producer = new Client(broker.url)
    sent = 0
    await within(producer.connect(), 'the producer connecting')
  })
  afterEach(async () => {
    for (const program of running.splice(0)) program.signal('SIGKILL')
    producer.destroy()
    await broker.stop()
    rmSync(folder, { recursive: true })
  })

  /** Fulfils when the broker has so many more jobs. */
  async function send(count: number): Promise<void> {
    const numbers = sequence(count).map((offset) => sent + Number(offset))
    sent += count
    await within(
      Promise.all(
        numbers.map((number) => producer.publish(`jobs/${number % 7}`, String(number), { qos: 1 })),
      ),
      'jobs handed in',
    )
  }

  async function start(clientId: string, filter: string): Promise<Program> {
    const program = new Program('service.js', {
      MQTT_URL: broker.url,
      CLIENT_ID: clientId,
      FILTER: filter,
      FILE: path.join(folder, clientId),
    })
    running.push(program)
    await program.says(({ state }) => state === 'ready', `${clientId} ready`)
    return program
  }

  async function stop(program: Program): Promise<void> {
    program.signal('SIGTERM')
    expect(await program.ends()).toEqual({ code: 0, last: { state: 'closed' }, errors: '' })
  }

  const done = (...clientIds: string[]): string[] =>
    clientIds.flatMap((clientId) =>
      readFileSync(path.join(folder, clientId), 'utf8').split('\n').slice(0, -1),
    )

  const different = (...clientIds: string[]): number => new Set(done(...clientIds)).size

  it('SIGTERM ends it in order: every job is done, once, those too that came while it was down', async () => {
    const first = await start('service', 'jobs/#')
    const sending = send(jobs)
    await eventually(() => different('service') > 50, 'the first jobs')
    await stop(first)
    const before = done('service').length
    expect(before).toBeLessThan(jobs)
    await sending
    await send(50)
    await start('service', 'jobs/#')
    await eventually(() => different('service') === jobs + 50, 'all jobs')
    expect(done('service').map(Number)).toEqual(sequence(jobs + 50).map(Number))
  })

  it('SIGKILL: every job is done, a few once more', async () => {
    const first = await start('service', 'jobs/#')
    const sending = send(jobs)
    await eventually(() => different('service') > 50, 'the first jobs')
    first.signal('SIGKILL')
    await first.ending
    await sending
    const second = await start('service', 'jobs/#')
    await eventually(() => different('service') > 200, 'more jobs')
    await stop(second)
    await start('service', 'jobs/#')
    await eventually(() => different('service') === jobs, 'all jobs')
    expect(done('service').length - jobs).toBeLessThanOrEqual(10)
  })

  it('one of two services that share the jobs stops and comes back: every job is done', async () => {
    const filter = '$share/services/jobs/#'
    const [first] = [await start('one', filter), await start('two', filter)]
    const sending = send(jobs)
    await eventually(() => different('one') > 20 && different('two') > 20, 'both at work')
    await stop(first)
    await sending
    await send(50)
    await start('one', filter)
    await eventually(() => different('one', 'two') === jobs + 50, 'all jobs')
    expect(different('one')).toBeGreaterThan(20)
  })
})
