/** Links of a virtual world as transports: what the interface promises, also when they are cut. */
import { expect, it } from 'vitest'
import { Network } from '../../../src/testing/network.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { DialOptions, Sink, Target, Transport } from '../../../src/transport/transport.js'

function hearing(): Sink & { readonly events: string[] } {
  const events: string[] = []
  const bytes = new Uint8Array(16)
  return {
    events,
    buffer: () => bytes,
    read: (length) => void events.push(`read ${length}`),
    chunk: (given) => void events.push(`chunk ${given}`),
    drain: () => void events.push('drain'),
    closed: (cause) => void events.push(`closed ${cause instanceof Error ? cause.message : cause}`),
  }
}

const target = {} as Target
const never: DialOptions = { signal: new AbortController().signal }
async function linked() {
  const clock = new VirtualClock()
  const tasks = (): Promise<void> => clock.settle()
  const [client, server] = memoryPair({
    schedule: (callback, delay) => clock.setTimer(callback, delay),
  })
  const network = new Network(async () => client)
  const dial = network.add(() => 'a')
  const link: Transport = await dial(target, never)
  const [near, far] = [hearing(), hearing()]
  link.open(near)
  server.open(far)
  await tasks()
  return { network, dial, link, server, near, far, tasks }
}

it('tells both ends of a cut, once, and refuses what is written afterwards', async () => {
  const { network, link, near, far, tasks } = await linked()
  const written: unknown[] = []
  network.cut('a', false)
  network.cut(undefined, false)
  expect(near.events).toEqual([])
  expect(link.write(Uint8Array.of(1), (error) => written.push(error))).toBe(false)
  await tasks()
  expect(near.events).toEqual(['closed the link was cut'])
  expect(far.events).toEqual(['closed The peer cut the stream'])
  expect(written).toEqual([expect.any(Error)])
})

it('swallows everything after a silent cut, the end included, and is closed by its own end alone', async () => {
  const { network, link, server, near, far, tasks } = await linked()
  const written: unknown[] = []
  network.cut('b', true)
  server.write(Uint8Array.of(1))
  await tasks()
  network.cut('a', true)
  expect(link.write(Uint8Array.of(2), (error) => written.push(error))).toBe(true)
  server.write(Uint8Array.of(3))
  await tasks()
  server.destroy(new Error('gone'))
  await tasks()
  expect(written).toEqual([undefined])
  expect(near.events).toEqual(['chunk 1'])
  expect(far.events).toEqual(['closed gone'])
  link.destroy(new Error('given up'))
  link.destroy(new Error('again'))
  expect(link.write(Uint8Array.of(4), (error) => written.push(error))).toBe(false)
  expect(near.events).toEqual(['chunk 1'])
  await tasks()
  expect(near.events).toEqual(['chunk 1', 'closed given up'])
  expect(written).toEqual([undefined, expect.any(Error)])
})

it.each([
  ['before', (cut: () => void, close: () => void) => [cut(), close()], []],
  ['after', (cut: () => void, close: () => void) => [close(), cut()], ['closed undefined']],
])(
  'ends when it is cut silently %s close(): what was said before then arrives',
  async (_, act, told) => {
    const { network, link, near, far, tasks } = await linked()
    act(
      () => void network.cut('a', true),
      () => link.close(),
    )
    expect(near.events).toEqual([])
    await tasks()
    expect(near.events).toEqual(['closed undefined'])
    expect(far.events).toEqual(told)
  },
)

it('cannot be dialled while it is cut; silently, dialling waits for the mend or the signal', async () => {
  const { network, dial } = await linked()
  const mend = network.cut('a', false)
  await expect(dial(target, never)).rejects.toMatchObject({ code: 'ENETUNREACH' })
  mend()
  const mendAgain = network.cut('a', true)
  const stop = new AbortController()
  const given = dial(target, { signal: stop.signal })
  const waiting = dial(target, never)
  stop.abort('too late')
  await expect(given).rejects.toBe('too late')
  mendAgain()
  expect(await waiting).toMatchObject({ open: expect.any(Function) })
})
