/** A process that ends with publishes on their way says so on standard error. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { freePort } from '../../support/servers.js'
import { type Broker, startAedes } from '../brokers.js'
import { Program } from './program.js'

let urls: Readonly<Record<string, string>>
let broker: Broker

beforeAll(async () => {
  await requireDist()
  broker = await startAedes()
  urls = { MQTT_URL: broker.urls.TCP ?? '', CLOSED_URL: `mqtt://127.0.0.1:${await freePort()}` }
})
afterAll(() => broker.stop())

const said = (errors: string): string | undefined =>
  /\[MQWIRE_UNSENT\] Warning: (.*)/.exec(errors)?.[1]

it.each([
  ['flying', 'queued or in flight: 2, bytes perhaps not written: [1-9]\\d*'],
  ['queued', 'queued or in flight: 1, bytes perhaps not written: 0'],
  ['posted', 'queued or in flight: 0, bytes perhaps not written: [1-9]\\d*'],
])('%s: a warning, once', async (mode, expected) => {
  const { code, last, errors } = await new Program('unsent.js', { ...urls, MODE: mode }).ends()
  expect([code, last]).toEqual([0, { listeners: 1 }])
  expect(said(errors)).toMatch(
    new RegExp(
      `^The process ends before mqwire is done \\(publishes ${expected}, clients: sender\\): await client\\.drain\\(\\) first$`,
    ),
  )
  expect(errors.match(/MQWIRE/g)).toHaveLength(1)
})

it.each([
  ['sent', 1],
  ['destroyed', 0],
  ['dropped', 0],
])('%s: no word', async (mode, listeners) => {
  const { code, last, errors } = await new Program('unsent.js', { ...urls, MODE: mode }, [
    '--expose-gc',
  ]).ends()
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  if (mode !== 'destroyed') expect(last).toEqual({ listeners })
})

it('disconnect() sends 200 publishes that nobody awaits, and says nothing', async () => {
  const program = new Program('unsent.js', { ...urls, MODE: 'disconnected' })
  const { code, errors } = await program.ends()
  expect({ code, errors, first: program.reports[0] }).toEqual({
    code: 0,
    errors: '',
    first: { acknowledged: 200 },
  })
})

it('without time it says how many it gave up, also where the process ends in the same turn', async () => {
  const { code, errors } = await new Program('unsent.js', { ...urls, MODE: 'hurried' }).ends()
  expect(code).toBe(0)
  expect(errors).toMatch(
    /\[MQWIRE_UNSENT\] MqwireWarning: mqwire sender: disconnect\(\) gave up \d+ publishes .*timeout was 0 ms/,
  )
  expect(errors.match(/MQWIRE/g)).toHaveLength(1)
})

it('--disable-warning is heeded', async () => {
  const { code, errors } = await new Program('unsent.js', { ...urls, MODE: 'hurried' }, [
    '--disable-warning=MQWIRE_UNSENT',
  ]).ends()
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
})

it('--no-warnings is heeded', async () => {
  const { code, errors } = await new Program('unsent.js', { ...urls, MODE: 'flying' }, [
    '--no-warnings',
  ]).ends()
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
})
