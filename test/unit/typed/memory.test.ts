/** Codecs that write into memory of their own again and again: what was encoded before stays as it was, however long it waits to be sent. */
import { expect, it } from 'vitest'
import * as mq from '../../../src/typed/index.js'
import { eventually } from '../../real/waiting.js'
import { all, pair } from './rig.js'

const scratch = new Uint8Array(64)
const reusing = mq.codec<string>({
  encode: (value) => scratch.subarray(0, new TextEncoder().encodeInto(value, scratch).written),
  decode: (bytes) => new TextDecoder().decode(bytes),
})
const words = ['aaa', 'bbb', 'ccc', 'ddd']

it('calls of one turn', async () => {
  const { caller, server } = await pair()
  const echo = mq.operation('echo/{id}', reusing, reusing)
  await echo.on(server).serve(({ value, params }) => `${params.id}:${value}`)
  const calls = words.map((word, id) => echo.on(caller).call({ id }, word, { timeout: 3000 }))
  expect(await Promise.all(calls)).toEqual(['0:aaa', '1:bbb', '2:ccc', '3:ddd'])
})

it('streams of one turn', async () => {
  const { caller, server } = await pair()
  const count = mq.operation('count/{id}', reusing, reusing)
  await count.on(server).serve(async function* ({ value }) {
    for (let n = 0; n < 3; n++) yield `${value}${n}`
  })
  const streams = words.map((word, id) =>
    all(count.on(caller).stream({ id }, word, { timeout: 3000 })),
  )
  expect(await Promise.all(streams)).toEqual(
    words.map((word) => [`${word}0`, `${word}1`, `${word}2`]),
  )
})

it('publishes, posts and writes of one turn', async () => {
  const { client: reading, other: sending } = await pair()
  const channel = mq.channel('word', reusing, { qos: 1 })
  const got: string[] = []
  await channel.on(reading).listen(({ value }) => void got.push(value))
  const bound = channel.on(sending)
  const writers = [bound.writableStream().getWriter(), bound.writableStream().getWriter()]
  await Promise.all([
    ...words.map((word) => bound.publish(word)),
    ...writers.map((writer, n) => writer.write(`w${n}`)),
    bound.post('post'),
  ])
  await eventually(() => got.length === 7)
  expect(got.sort()).toEqual([...words, 'post', 'w0', 'w1'])
})

it('wills, and views that are no Uint8Array', async () => {
  const floats = new Float32Array(2)
  const pair = mq.codec<number[]>({
    encode: (value) => {
      floats.set(value)
      return floats as never
    },
    decode: (bytes) => [...new Float32Array(bytes.buffer)],
  })
  const channel = mq.channel('pair', pair)
  const first = channel.will([1, 2]).payload as Uint8Array
  channel.will([3, 4])
  expect(pair.decode(new Uint8Array(first), undefined as never)).toEqual([1, 2])
})

it('bytes() sends the memory of the caller, and gives an array of its own', async () => {
  const { client: reading, other: sending } = await pair()
  const given = Uint8Array.of(1, 2, 3)
  expect(mq.bytes().encode(given)).toBe(given)
  await using subscription = await mq
    .channel('bytes', mq.bytes())
    .on(reading)
    .subscribe({ lifetime: 'borrowed' })
  await sending.publish('bytes', given)
  const first = (await subscription.next())?.value
  for (let n = 0; n < 50; n++) {
    await sending.publish('bytes', Uint8Array.of(9, 9, 9))
    await subscription.next()
  }
  expect(first).toEqual(given)
})
