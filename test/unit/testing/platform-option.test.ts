/** `virtualPlatform`: the ordinary `connect` and `Client` on a virtual clock, through the public entries alone. */
import { describe, expect, it } from 'vitest'
import { Client, connect } from '../../../src/client/browser.js'
import { MemoryBroker, VirtualClock, virtualPlatform } from '../../../src/testing/index.js'
import { virtualPlatform as wholePlatform } from '../../../src/testing/virtual-platform.js'

const minute = 60_000

function virtual() {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock })
  return {
    clock,
    broker,
    endpoint: { url: 'mqtt://broker', transport: broker.dial },
    platform: virtualPlatform(clock),
  }
}

describe('the option platform', () => {
  it('an hour passes in a test', async () => {
    const { clock, broker, endpoint, platform } = virtual()
    const connecting = connect(endpoint, { platform, keepAlive: 60, clientId: 'meter' })
    await clock.advance(10)
    const client = await connecting
    const pings: number[] = []
    client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'pingreq') pings.push(clock.now())
    })
    await clock.advance(60 * minute)
    expect(pings.length).toBeGreaterThanOrEqual(59)
    expect(client.state).toBe('connected')
    const leaving = client.disconnect()
    await clock.advance(10)
    await leaving
    await broker.close()
  })

  it('new Client takes it as well: a first connection that hangs fails after its connectTimeout', async () => {
    const { clock, platform } = virtual()
    const client = new Client(
      { url: 'mqtt://broker', transport: () => new Promise<never>(() => undefined) },
      { platform, connectTimeout: 5 * minute },
    )
    const error = client.connect().catch((reason: unknown) => reason)
    await clock.advance(5 * minute + 1)
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_TIMEOUT' })
  })

  it.each([5, 'virtual', {}, { now: 5 }])('refuses %j before anything is dialled', (platform) => {
    let dialled = 0
    const transport = (): never => {
      dialled += 1
      throw new Error('dialled')
    }
    const make = (): Client =>
      new Client({ url: 'mqtt://broker', transport }, { platform: platform as never })
    expect(make).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'platform' }),
    )
    expect(dialled).toBe(0)
  })
})

it('the random numbers of a seed are the same everywhere: those of xorshift32', () => {
  const numbers = (seed?: number): number[] => {
    const platform = wholePlatform(new VirtualClock(), seed)
    return Array.from({ length: 3 }, () => platform.random() * 4_294_967_296)
  }
  expect(numbers()).toEqual([270_369, 67_634_689, 2_647_435_461])
  expect(numbers(0)).toEqual(numbers(1))
  expect(numbers(7)).not.toEqual(numbers(1))
})
