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

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
const refusal = (on: unknown): unknown => thrownBy(() => new World({ on } as ClientOptions))

describe('the option on', () => {
  it('attaches listeners before the first dial: what happens meanwhile is told to them', async () => {
    const seen: string[] = []
    const on: ClientOptions['on'] = {
      state: ({ state }) => seen.push(`state ${state}`),
      dial: ({ attempt }) => seen.push(`dial ${attempt}`),
      connecterror: ({ error }) => seen.push(error.code),
      reconnecting: ({ delay }) => seen.push(`again in ${delay}`),
    }
    const behave = (_host: string, dial: number) => (dial === 1 ? down : 'hang')
    const rig = new Rig({ firstConnect: 'wait', on }, { behave })
    quiet(rig.client.connect())
    await rig.advance(1000)
    expect(seen.join(', ')).toBe(
      'state connecting, dial 1, ERR_CONNECT_FAILED, again in 1000, dial 2',
    )
    await rig.finish()
  })

  it('connect() takes it too', async () => {
    const seen: unknown[] = []
    const clock = new VirtualClock()
    const endpoint = { url: 'x://a', transport: () => Promise.reject(down) }
    const connect = connectWith(clientOn(virtualPlatform(clock)))
    const connecting = connect(endpoint, { on: { connecterror: (event) => seen.push(event) } })
    const error = { code: 'ERR_CONNECT_FAILED' }
    await expect(Promise.all([connecting, clock.settle()])).rejects.toMatchObject(error)
    expect(seen).toMatchObject([{ attempt: 1, endpoint: 'x://a', error }])
  })

  it.each([
    ['mesage', 'unknown event mesage; did you mean subscribe() or listen()?'],
    ['reconecting', 'unknown event reconecting; did you mean reconnecting?'],
    ['close', 'unknown event close; did you mean disconnect, state?'],
  ])('%s is no event: refused by name, with the one that was meant', (name, message) => {
    const refused = refusal({ [name]: () => undefined })
    const code = 'ERR_INVALID_OPTION'
    expect(MqttError.is(refused)).toBe(true)
    expect(refused).toMatchObject({ code, option: `on.${name}`, message })
    const told = thrownBy(() => new World().client.on(name as never, () => undefined))
    expect(told).toMatchObject({ code, message })
  })

  it('what is no function, and what is no object, is refused by name', () => {
    for (const state of ['loud', null])
      expect(refusal({ state })).toMatchObject({ code: 'ERR_INVALID_HANDLER', option: 'on.state' })
    for (const on of ['state', 1, null, () => undefined, ['state']])
      expect(refusal(on), String(on)).toMatchObject({ code: 'ERR_INVALID_OPTION' })
  })

  it('undefined is as good as left out, and the object that was given is not kept', async () => {
    const seen: string[] = []
    const on: ClientOptions['on'] = { state: undefined, dial: () => seen.push('given') }
    const world = new World({ on })
    const later = (): number => seen.push('put there later')
    Object.assign(on, { dial: later, state: later })
    quiet(world.client.connect())
    await world.settle()
    expect(seen).toEqual(['given'])
  })

  it('is typed by the events', () => {
    type On = NonNullable<ClientOptions['on']>
    expectTypeOf<keyof On>().toEqualTypeOf<keyof ClientEvents>()
    type Listener = NonNullable<On['connecterror']>
    expectTypeOf<Listener>().parameter(0).toEqualTypeOf<ClientEvents['connecterror']>()
    // @ts-expect-error there is no such event
    expect(refusal({ mesage: () => undefined } satisfies On)).toBeInstanceOf(MqttError)
  })
})
