/** Schemas and codecs of real libraries, through mosquitto: what they hand out stays what it was. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BytesValueSchema } from '@bufbuild/protobuf/wkt'
import { type } from 'arktype'
import { decode as fromCbor, encode as toCbor } from 'cbor-x'
import { pack, unpack } from 'msgpackr'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Client } from '../../../src/client/node.js'
import * as mq from '../../../src/typed/index.js'
import { type Broker, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually } from '../../real/waiting.js'
import { coded } from './rig.js'

const dated = v.transform((text: string) => new Date(text))
const schemas = {
  zod: z.object({
    at: z.iso.datetime().transform((text) => new Date(text)),
    celsius: z.number().min(-60),
  }),
  valibot: v.object({
    at: v.pipe(v.string(), v.isoTimestamp(), dated),
    celsius: v.pipe(v.number(), v.minValue(-60)),
  }),
  arktype: type({ at: 'string.date.iso.parse', celsius: 'number >= -60' }),
}

type Binary = { readonly data: Uint8Array }

/** Each message has bytes of its own: what shows those of another one has been written over. */
const dataOf = (seq: number): Uint8Array =>
  Uint8Array.from({ length: 40 }, (_, n) => (seq * 31 + n * 7) % 251)

withMosquitto(['TCP'], (transport) => {
  describe('real libraries, through mosquitto', () => {
    let broker: Broker | undefined
    let client: Client
    beforeAll(async () => {
      broker = await startMosquitto()
      client = new Client(broker.urls[transport] ?? '')
      await client.connect()
    })
    afterAll(async () => {
      await client.disconnect()
      await broker?.stop()
    })

    it.each(['zod', 'valibot', 'arktype'] as const)(
      '%s checks what is sent, and makes what is received',
      async (name) => {
        const schema = schemas[name] as unknown as mq.StandardSchema<
          { at: string; celsius: number },
          { at: Date; celsius: number }
        >
        const channel = mq
          .channel(`lib/${name}/{id}` as 'lib/x/{id}', mq.json(schema), { qos: 1 })
          .on(client)
        await using subscription = await channel.subscribe()
        const at = '2026-01-02T03:04:05.000Z'
        await channel.publish({ id: 1 }, { at, celsius: 21 })
        expect((await subscription.next({ timeout: 5000 }))?.value.at).toEqual(new Date(at))
        const invalid = coded('ERR_INVALID_PAYLOAD', {
          message: expect.stringContaining('celsius'),
        })
        await expect(channel.publish({ id: 1 }, { at, celsius: -100 })).rejects.toEqual(invalid)
        await client.publish(`lib/${name}/1`, '{"at":"noon","celsius":1}', { qos: 1 })
        await channel.publish({ id: 2 }, { at, celsius: 22 })
        expect((await subscription.next({ timeout: 5000 }))?.value.celsius).toBe(22)
        expect(subscription.invalid).toBe(1)
      },
    )

    const codecs = {
      msgpackr: mq.codec<Binary>({
        encode: pack,
        decode: unpack,
        contentType: 'application/msgpack',
      }),
      'cbor-x': mq.codec<Binary>({
        encode: toCbor,
        decode: fromCbor,
        contentType: 'application/cbor',
      }),
      protobuf: mq.codec<Binary>({
        encode: ({ data }) => toBinary(BytesValueSchema, create(BytesValueSchema, { value: data })),
        decode: (bytes) => ({ data: fromBinary(BytesValueSchema, bytes).value }),
        contentType: 'application/protobuf',
      }),
    }

    /** Sends 1,001 messages and keeps what is decoded; gives how many differ in the end from what was sent. */
    async function changedOf(
      name: string,
      codec: mq.Codec<Binary>,
      lifetime: 'owned' | 'borrowed',
    ): Promise<number> {
      const channel = mq.channel(`bin/${name}`, codec, { qos: 1 }).on(client)
      const kept: Uint8Array[] = []
      const handling = await channel.listen(({ value }) => void kept.push(value.data), { lifetime })
      for (let n = 0; n <= 1000; n++) channel.publish({ data: dataOf(n) }).catch(() => undefined)
      await eventually(() => kept.length > 1000, 'all of them', 15_000)
      await handling.unsubscribe()
      expect(kept.length).toBe(1001)
      return kept.filter(
        (data, seq) => data.length !== 40 || dataOf(seq).some((byte, n) => data[n] !== byte),
      ).length
    }

    it.each(['msgpackr', 'cbor-x', 'protobuf'] as const)(
      'a binary field of %s is unchanged after 1,000 further messages',
      async (name) => {
        for (const lifetime of ['owned', 'borrowed'] as const)
          expect(await changedOf(name, codecs[name], lifetime)).toBe(0)
      },
    )

    it('would be found out if it were not: a codec that says that it keeps no view, and does', async () => {
      expect(
        await changedOf('view', { ...codecs.protobuf, inPlace: true }, 'borrowed'),
      ).toBeGreaterThan(100)
    })
  })
})
