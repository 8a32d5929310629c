/** A store that the program has closed while a client or a queue still uses it: nothing can be written any more, and nothing waits for that. */
import { describe, expect, it } from 'vitest'
import { openQueue } from '../../../../src/queue/index.js'
import { memoryStore } from '../../../../src/store/index.js'
import { Device, settled, url } from './rig.js'

const quiet = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error)

async function device(): Promise<Device> {
  const made = new Device()
  made.store = memoryStore()
  await made.peer()
  return made
}

const closed = { code: 'ERR_STORE', outcome: 'not-sent', message: expect.stringMatching(/^store closed: .*close it after/) }

describe('a client whose store was closed', () => {
  it.each([1, 2] as const)('rejects a publish at QoS %i, which was not sent, and says what to do', async (qos) => {
    const made = await device()
    const client = await made.client()
    await settled()
    await made.store.close()
    expect(await quiet(client.publish('out/1', 'one', { qos }))).toMatchObject(closed)
    expect(made.arrived).toEqual([])
    await made.world.close()
  })

  it.each([1, 2] as const)('disconnects at once, also with QoS %i on its way', async (qos) => {
    const made = await device()
    const client = await made.client()
    const published = [quiet(client.publish('out/1', 'one', { qos }))]
    made.onPacket = (packet) => packet === 'out publish 1' && void made.store.close()
    await settled()
    published.push(quiet(client.publish('out/1', 'two', { qos })))
    const before = made.world.now()
    await client.disconnect()
    expect(made.world.now() - before).toBeLessThan(1000)
    const [one, two] = await Promise.all(published)
    if (qos === 1) expect(one).toMatchObject({ reasonCode: 0 })
    else expect(one).toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
    expect(two).toMatchObject(closed)
    await made.world.close()
  })

  it('disconnects at once where it had asked the store for nothing since', async () => {
    const made = await device()
    const client = await made.client()
    await settled()
    await made.store.close()
    const before = made.world.now()
    await client.disconnect()
    expect(made.world.now() - before).toBeLessThan(1000)
    await made.world.close()
  })

  it('goes on where the server has lost the session, though what came in cannot be forgotten', async () => {
    const made = await device()
    const peer = await made.client({ clientId: 'sender', store: undefined })
    const client = await made.client({ reconnect: { backoff: () => 5000 } })
    // Taken and not acknowledged: its record stays.
    await client.listen('in/#', () => new Promise<void>(() => undefined), { qos: 2 })
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    await made.store.close()
    const mend = made.world.cut('device')
    const other = new made.world.Client(url, { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 })
    mend()
    await other.connect()
    await other.disconnect()
    await made.world.pass(60_000)
    expect([client.state, made.events('sessionlost').length]).toEqual(['connected', 1])
    expect(made.events('error')).toMatchObject([{ error: { code: 'ERR_STORE', message: closed.message } }])
    client.destroy()
    await made.world.close()
  })

  it('tells it once', async () => {
    const made = await device()
    const client = await made.client()
    await settled()
    await made.store.close()
    await quiet(client.publish('out/1', 'one', { qos: 1 }))
    await made.world.pass(10_000)
    expect(made.events('error')).toMatchObject([{ error: { code: 'ERR_STORE', message: closed.message } }])
    await client.disconnect()
    await made.world.close()
  })
})

describe('a queue whose store was closed', () => {
  it('rejects what is new, and closes at once', async () => {
    const made = await device()
    const client = await made.client()
    const queue = await openQueue(client, { store: made.store })
    await settled()
    await made.store.close()
    expect(await quiet(queue.publish('out/1', 'one'))).toMatchObject(closed)
    await queue.close({ timeout: 2 ** 31 - 1 })
    await made.world.close()
  })

  it.each([1, 2] as const)('closes at once with an entry at QoS %i on its way', async (qos) => {
    const made = await device()
    const client = await made.client()
    const queue = await openQueue(client, { store: made.store })
    made.onPacket = (packet) => packet.startsWith('out publish') && void made.store.close()
    const { delivered } = await queue.publish('out/1', 'one', { qos })
    const told = quiet(delivered)
    await settled()
    await queue.close({ timeout: 2 ** 31 - 1 })
    expect(await told).not.toMatchObject({ outcome: 'not-sent' })
    await client.disconnect()
    await made.world.close()
  })
})
