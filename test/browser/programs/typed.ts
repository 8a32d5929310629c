/** Schemas and codecs of real libraries in a page: `window.tried(url)` gives what became of each. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BytesValueSchema } from '@bufbuild/protobuf/wkt'
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

/** Each message has bytes of its own: what shows those of another one has been written over. */
const dataOf = (seq: number): Uint8Array =>
  Uint8Array.from({ length: 40 }, (_, n) => (seq * 31 + n * 7) % 251)

const protobuf: mq.Codec<Binary> = {
  encode: ({ data }) => toBinary(BytesValueSchema, create(BytesValueSchema, { value: data })),
  decode: (bytes) => ({ data: fromBinary(BytesValueSchema, bytes).value }),
}

const codecs: Readonly<Record<string, mq.Codec<Binary>>> = {
  msgpackr: {
    encode: pack,
    decode: unpack as (bytes: Uint8Array) => Binary,
    contentType: 'application/msgpack',
  },
  'cbor-x': {
    encode: toCbor,
    decode: fromCbor as (bytes: Uint8Array) => Binary,
    contentType: 'application/cbor',
  },
  protobuf,
  // It says that it keeps no view, and does: so would it look.
  'a view': { ...protobuf, inPlace: true },
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
    const handling = await channel.listen(({ value }) => void kept.push(value), {
      lifetime: 'borrowed',
    })
    for (let n = 0; n <= 1000; n++) channel.publish({ data: dataOf(n) }).catch(() => undefined)
    for (let wait = 0; kept.length <= 1000 && wait < 1000; wait++)
      await new Promise((resolve) => setTimeout(resolve, 10))
    await handling.unsubscribe()
    const same = kept.every(
      ({ data }, seq) => data.length === 40 && dataOf(seq).every((byte, n) => data[n] === byte),
    )
    lines.push(`${name}: ${kept.length} ${same ? 'unchanged' : 'changed'}`)
  }
  for (const [name, schema] of Object.entries(schemas)) {
    const channel = mq
      .channel(`page/${name}`, mq.json(schema as mq.StandardSchema<{ value: number }>), { qos: 1 })
      .on(client)
    await using subscription = await channel.subscribe()
    await client.publish(`page/${name}`, '{"value":"x"}', { qos: 1 })
    await channel.publish({ value: 4 })
    const received = await subscription.next({ timeout: 5000 })
    const refused = await channel
      .publish({ value: 'x' as never })
      .catch((error: { code: string }) => error.code)
    lines.push(`${name}: ${received?.value.value} ${subscription.invalid} ${String(refused)}`)
  }
  await client.disconnect()
  return lines
}

Object.assign(globalThis, { tried })
