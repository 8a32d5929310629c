/** The fleet of the examples: under load one worker is killed, one added, one leaves; and the count that must not be fooled. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { startMosquitto, withMosquitto } from '../../real/brokers.js'
import { requireDist, root } from '../fixture.js'
import { Program } from './program.js'

beforeAll(requireDist)

function figure(output: string, name: string): number {
  return Number(new RegExp(`^${name} +([\\d,]+)`, 'm').exec(output)?.[1]?.replaceAll(',', ''))
}

async function play(url: string): Promise<void> {
  const { code, output } = await new Program('fleet/main.js', ['--jobs', '1500', '--rate', '300'], url, {}, 50_000).ending
  expect(output).toContain('Each job was done at least once, and twice only what the killed worker had in hand.')
  expect([figure(output, 'published'), figure(output, 'lost'), code]).toEqual([1500, 0, 0])
  // The fourth may come late on a busy machine.
  expect([1, 2, 3].map((number) => figure(output, `worker-${number}`) > 0)).toEqual([true, true, true])
  for (const change of ['worker-2 is killed', 'worker-2 is back', 'worker-4 is added', 'worker-1 has left']) expect(output).toContain(change)
}

describe('npm run fleet', () => {
  it('each job is done, and twice only what the killed worker had in hand', () => play(''))

  withMosquitto(['TCP'], () => {
    it('the same with mosquitto, which loses what belonged to a session that ended', async () => {
      const broker = await startMosquitto()
      try {
        await play(broker.urls.TCP as string)
      } finally {
        await broker.stop()
      }
    })
  })
})

interface Count {
  handlePublished(job: string): void
  handleDone(job: string, worker: string): void
  handleKilled(worker: string, began: readonly string[]): void
  readonly isFlawless: boolean
}

describe('the count of the fleet', () => {
  let made: () => Count
  beforeAll(async () => {
    const modules = (await import(pathToFileURL(path.join(root, 'examples', 'fleet', 'count.js')).href)) as { Count: new (hand: number) => Count }
    made = () => new modules.Count(2)
  })

  it('finds a job that is lost', () => {
    const count = made()
    for (const job of ['a', 'b']) count.handlePublished(job)
    count.handleDone('a', 'one')
    expect(count.isFlawless).toBe(false)
    count.handleDone('b', 'two')
    expect(count.isFlawless).toBe(true)
  })

  it('finds a job that was done twice and was in no hand of a killed worker', () => {
    const count = made()
    for (const job of ['a', 'b', 'c']) count.handlePublished(job)
    for (const job of ['a', 'b', 'c']) count.handleDone(job, 'one')
    count.handleKilled('one', ['a', 'b', 'c'])
    count.handleDone('c', 'two')
    expect(count.isFlawless).toBe(true)
    count.handleDone('a', 'two')
    expect(count.isFlawless).toBe(false)
  })
})
