/** The fleet of the examples: under load one worker is killed, one added, one leaves; and the count that must not be fooled. */
import { beforeAll, describe, expect, it } from 'vitest'
import { startMosquitto, withMosquitto } from '../../real/brokers.js'
import { requireDist } from '../fixture.js'
import { exampleModule, Program } from './program.js'

beforeAll(requireDist)

function figure(output: string, name: string): number {
  return Number(new RegExp(`^${name} +([\\d,]+)`, 'm').exec(output)?.[1]?.replaceAll(',', ''))
}

async function play(url: string): Promise<void> {
  const output = await new Program(
    'fleet/main.js',
    ['--jobs', '1500', '--rate', '300'],
    url,
    {},
    50_000,
  ).ends()
  expect(output).toContain(
    'Each job was done at least once, and twice only what the killed worker had in hand.',
  )
  expect([figure(output, 'published'), figure(output, 'lost')]).toEqual([1500, 0])
  // The fourth may come late on a busy machine.
  expect([1, 2, 3].map((number) => figure(output, `worker-${number}`) > 0)).toEqual([
    true,
    true,
    true,
  ])
  for (const change of [
    'worker-2 is killed',
    'worker-2 is back',
    'worker-4 is added',
    'worker-1 has left',
  ])
    expect(output).toContain(change)
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

describe('the count of the fleet', async () => {
  const { Count } = await exampleModule('fleet/count.js')

  it('finds a job that is lost', () => {
    const count = new Count(2)
    for (const job of ['a', 'b']) count.handlePublished(job)
    count.handleDone('a', 'one')
    expect(count.isFlawless).toBe(false)
    count.handleDone('b', 'two')
    expect(count.isFlawless).toBe(true)
  })

  it('finds a job that was done twice and was in no hand of a killed worker', () => {
    const count = new Count(2)
    for (const job of ['a', 'b', 'c']) count.handlePublished(job)
    for (const job of ['a', 'b', 'c']) count.handleDone(job, 'one')
    count.handleKilled('one', ['a', 'b', 'c'])
    count.handleDone('c', 'two')
    expect(count.isFlawless).toBe(true)
    count.handleDone('a', 'two')
    expect(count.isFlawless).toBe(false)
  })
})
