/** Listeners given as an option: attached before anything is dialled, as `client.on` would. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import type { ClientEvents, ClientOptions } from '../../../src/client/api/index.js'
import { clientOn, connectWith } from '../../../src/client/client.js'
import { MqttError } from '../../../src/errors.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { World } from './harness.js'
import { quiet } from './incoming.js'
import { down, Rig } from './rig.js'

const thrownBy = (on: unknown): unknown => {
  try {
    return new World({ on } as ClientOptions)
  } catch (error) {
    return error
  }
}

describe('the option on', () => {
  it('attaches listeners before the first dial: what happens meanwhile is told to them', async () => {
    const seen: string[] = []
    const rig = new Rig(
      {
        firstConnect: 'wait',
        on: {
          state: ({ state }) => seen.push(`state ${state}`),
          dial: ({ attempt }) => seen.push(`dial ${attempt}`),
          connecterror: ({ error }) => seen.push(error.code),
          reconnecting: ({ delay }) => seen.push(`reconnecting in ${delay}`),
        },
      },
      { behave: (_host, dial) => (dial === 1 ? down : 'hang') },
    )
    quiet(rig.client.connect())
    await rig.advance(1000)
    expect(seen).toEqual(['state connecting', 'dial 1', 'ERR_CONNECT_FAILED', 'reconnecting in 1000', 'dial 2'])
    await rig.finish()
  })

  it('connect() takes it too', async () => {
    const seen: unknown[] = []
    const clock = new VirtualClock()
    const endpoint = { url: 'x://a', transport: () => Promise.reject(down) }
    const connect = connectWith(clientOn(virtualPlatform(clock)))
    const connecting = connect(endpoint, { on: { connecterror: (event) => seen.push(event) } })
    await expect(Promise.all([connecting, clock.settle()])).rejects.toMatchObject({ code: 'ERR_CONNECT_FAILED' })
    expect(seen).toMatchObject([{ attempt: 1, endpoint: 'x://a', error: { code: 'ERR_CONNECT_FAILED' } }])
  })

  it.each([
    ['mesage', 'unknown event mesage; did you mean subscribe() or listen()?'],
    ['reconecting', 'unknown event reconecting; did you mean reconnecting?'],
    ['close', 'unknown event close; did you mean disconnect, state?'],
  ])('%s is no event: refused by name, with the one that was meant', (name, message) => {
    const client = new World().client
    let told: unknown
    try {
      client.on(name as never, () => undefined)
    } catch (error) {
      told = error
    }
    const refused = thrownBy({ [name]: () => undefined })
    expect(MqttError.is(refused)).toBe(true)
    expect(refused).toMatchObject({ code: 'ERR_INVALID_OPTION', option: `on.${name}`, message })
    expect(told).toMatchObject({ code: 'ERR_INVALID_OPTION', message })
  })

  it('what is no function, and what is no object, is refused by name', () => {
    expect(thrownBy({ state: 'loud' })).toMatchObject({ code: 'ERR_INVALID_HANDLER', option: 'on.state' })
    expect(thrownBy({ state: null })).toMatchObject({ code: 'ERR_INVALID_HANDLER', option: 'on.state' })
    for (const on of ['state', 1, null, () => undefined, ['state']]) expect(thrownBy(on), String(on)).toMatchObject({ code: 'ERR_INVALID_OPTION' })
  })

  it('undefined is as good as left out, and the object that was given is not kept', async () => {
    const seen: string[] = []
    const on: { state?: (() => void) | undefined; dial: () => void } = { state: undefined, dial: () => seen.push('given') }
    const world = new World({ on })
    on.dial = () => seen.push('put there later')
    on.state = () => seen.push('put there later')
    quiet(world.client.connect())
    await world.settle()
    expect(seen).toEqual(['given'])
  })

  it('is typed by the events', () => {
    type On = NonNullable<ClientOptions['on']>
    expectTypeOf<keyof On>().toEqualTypeOf<keyof ClientEvents>()
    expectTypeOf<NonNullable<On['connecterror']>>().parameter(0).toEqualTypeOf<ClientEvents['connecterror']>()
    // @ts-expect-error there is no such event
    expect(thrownBy({ mesage: () => undefined } satisfies On)).toBeInstanceOf(MqttError)
  })
})
