/** A million publishes with nobody there: the process stays small, and each of them settles. */
import { expect, it } from 'vitest'
import { requireDist } from '../../package/fixture.js'
import { freePort } from '../../support/servers.js'
import { besideUnsent, Program } from './program.js'

/** `npm run lab -- endurance` has more: MQWIRE_LONG=1 takes a million. */
const long = process.env['MQWIRE_LONG'] !== undefined
const publishes = long ? 1_000_000 : 30_000
const mebibyte = 1024 * 1024

it(
  `${publishes.toLocaleString('en')} offline publishes, 1 MiB, drop-oldest, ttl 10 s: RSS stays bounded, and the dropped ones reject`,
  async () => {
    await requireDist()
    const gone = `mqtt://127.0.0.1:${await freePort()}`
    const program = new Program(
      'offline.js',
      { PUBLISHES: String(publishes), TTL: '10000', MQTT_URL: gone },
      ['--expose-gc'],
      long ? 10 : 1,
    )
    const { code, last, errors } = await program.ends(long ? 600_000 : 55_000)
    expect({ code, errors: besideUnsent(errors) }).toEqual({ code: 0, errors: '' })
    const { before, most, mostQueued, left, codes, settled, published, maxQueuedBytes } =
      last as Readonly<Record<string, number>> & {
        readonly codes: Readonly<Record<string, number>>
      }
    console.log(
      `RSS ${((before ?? 0) / mebibyte).toFixed(0)} MiB before, ${((most ?? 0) / mebibyte).toFixed(0)} MiB at most, of ${published} publishes`,
    )
    expect(settled).toBe(published)
    // 100 bytes of payload each, and its topic.
    expect(mostQueued).toBeLessThanOrEqual((maxQueuedBytes ?? 0) / 100)
    expect(
      Object.keys(codes).filter(
        (name) =>
          !['ERR_DROPPED not-sent', 'ERR_EXPIRED not-sent', 'ERR_CLOSED not-sent'].includes(name),
      ),
    ).toEqual([])
    expect(codes['ERR_CLOSED not-sent']).toBe(left)
    expect(codes['ERR_DROPPED not-sent']).toBeGreaterThan(0)
    // Young garbage, and errors with their stacks, of which there are many: the same for a hundred thousand and for a million.
    expect((most ?? Number.NaN) - (before ?? 0)).toBeLessThan(100 * mebibyte)
  },
  long ? 600_000 : 60_000,
)
