/** PUBLISH of a client in one step: under an alias, with properties, of every length; and what is given that is no topic. */
import { describe, expect, it } from 'vitest'
import { encode } from '../../../src/wire/encode.js'
import { writeMessage, writePublish } from '../../../src/wire/encode-publish.js'
import { Writer } from '../../../src/wire/writer.js'

const payload = Uint8Array.of(1, 2, 3)

function written(topic: string, properties: { contentType: string } | undefined, alias: number, times = 1): Uint8Array {
  const writer = new Writer(64, true)
  let start = 0
  for (let time = 0; time < times; time++) {
    start = writer.length
    writeMessage(writer, topic, payload, { qos: 0, retain: false, properties }, 0, alias, false, 5, false)
  }
  return writer.bytes.slice(start, writer.length)
}

describe('a PUBLISH under an alias', () => {
  it.each([
    ['its topic, which is new', 'a/alias/new', undefined, 1],
    ['its topic, which is known', 'a/alias/known', undefined, 2],
    ['its topic and properties', 'a/alias/b', { contentType: 'x' }, 1],
    ['properties and no topic', '', { contentType: 'x' }, 1],
    ['no topic', '', undefined, 1],
  ])('with %s is what the encoder of any packet writes', (_name, topic, properties, times) => {
    const expected = encode({ type: 'publish', topic, payload, properties: { ...properties, topicAlias: 7 } })
    // Properties may stand in any order.
    expect([...written(topic, properties, 7, times)].sort()).toEqual([...expected].sort())
    expect(written(topic, properties, 7, times)).toHaveLength(expected.length)
  })
})

describe('a PUBLISH that is too large', () => {
  it.each([
    ['known', 2],
    ['new', 1],
  ])('is refused where its topic is %s, and nothing of it is written', (name, times) => {
    const writer = new Writer(64, true)
    const settings = { qos: 0, retain: false, properties: undefined } as const
    for (let time = 1; time < times; time++) writeMessage(writer, `large/${name}`, payload, settings, 0, 0, false, 5, false)
    const before = writer.length
    const write = (): unknown => writeMessage(writer, `large/${name}`, { length: 268_435_456 }, settings, 0, 0, false, 5, true)
    expect(write).toThrow(expect.objectContaining({ kind: 'too-large' }))
    expect(writer.length).toBe(before)
  })
})

describe('what is no topic', () => {
  it.each([[5], [undefined], [null], [{}]])('%o is refused by its name', (topic) => {
    const writer = new Writer(64)
    expect(() => writePublish(writer, { topic: topic as never }, 5)).toThrow(expect.objectContaining({ kind: 'malformed', fault: 'local' }))
    expect(writer.length).toBe(0)
  })
})
