/** Schemas and codecs of real libraries in a page: `window.tried(url)` gives what became of each. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { StringValueSchema } from '@bufbuild/protobuf/wkt'
import { type } from 'arktype'
import { decode as fromCbor, encode as toCbor } from 'cbor-x'
import { pack, unpack } from 'msgpackr'
import * as v from 'valibot'
import { z } from 'zod'
import { Client } from '../../../src/client/browser.js'
import * as mq from '../../../src/typed/index.js'

interface Binary {
  readonly data: Uint8Array
}

const sample = Uint8Array.from({ length: 40 }, (_, n) => n)

const codecs: Readonly<Record<string, mq.Codec<Binary>>> = {
  msgpackr: { encode: pack, decode: unpack as (bytes: Uint8Array) => Binary, contentType: 'application/msgpack' },
  'cbor-x': { encode: toCbor, decode: fromCbor as (bytes: Uint8Array) => Binary, contentType: 'application/cbor' },
  protobuf: {
    encode: ({ data }) => toBinary(StringValueSchema, create(StringValueSchema, { value: String.fromCharCode(...data) })),
    decode: (bytes) => ({ data: Uint8Array.from(fromBinary(StringValueSchema, bytes).value, (unit) => unit.charCodeAt(0)) }),
  },
}

const schemas = {
  zod: z.object({ value: z.number() }),
  valibot: v.object({ value: v.number() }),
  arktype: type({ value: 'number' }),
}

async function tried(url: string): Promise<string[]> {
  const client = new Client(url)
  await client.connect()
  const lines: string[] = []
  for (const [name, codec] of Object.entries(codecs)) {
    const channel = mq.channel(`page/${name}`, codec, { qos: 1 }).on(client)
    const kept: Binary[] = []
    const handling = await channel.listen(({ value }) => void kept.push(value), { lifetime: 'borrowed' })
    for (let n = 0; n <= 1000; n++) channel.publish({ data: sample }).catch(() => undefined)
    for (let wait = 0; kept.length <= 1000 && wait < 1000; wait++) await new Promise((resolve) => setTimeout(resolve, 10))
    await handling.unsubscribe()
    const same = kept.every(({ data }) => data.length === sample.length && sample.every((byte, n) => data[n] === byte))
    lines.push(`${name}: ${kept.length} ${same ? 'unchanged' : 'changed'}`)
  }
  for (const [name, schema] of Object.entries(schemas)) {
    const channel = mq.channel(`page/${name}`, mq.json(schema as mq.StandardSchema<{ value: number }>), { qos: 1 }).on(client)
    await using subscription = await channel.subscribe()
    await client.publish(`page/${name}`, '{"value":"x"}', { qos: 1 })
    await channel.publish({ value: 4 })
    const received = await subscription.next({ timeout: 5000 })
    const refused = await channel.publish({ value: 'x' as never }).catch((error: { code: string }) => error.code)
    lines.push(`${name}: ${received?.value.value} ${subscription.invalid} ${String(refused)}`)
  }
  await client.disconnect()
  return lines
}

Object.assign(globalThis, { tried })
