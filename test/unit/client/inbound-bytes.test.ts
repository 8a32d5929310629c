/** The link is killed at each byte while messages come in: each is delivered, QoS 2 once, and nothing is acknowledged that was not asked for. */
import { describe, expect, it } from 'vitest'
import { type Cut, cutting } from './cutting.js'
import { SmallBroker } from './small-broker.js'

const texts = Array.from({ length: 60 }, (_, index) => String(index))
const levelOf = (text: string): 1 | 2 => (Number(text) % 2 === 0 ? 1 : 2)

/** 60 messages from the broker, QoS 1 and 2 in turn; gives what the application read. */
async function receiving(
  cuts: readonly Cut[],
): Promise<{ broker: SmallBroker; got: string[]; bytes: number }> {
  const broker = new SmallBroker({ deliver: texts.map((text) => ({ text, qos: levelOf(text) })) })
  const world = cutting(broker, cuts, { firstConnect: 'wait', receiveMaximum: 20 })
  const got: string[] = []
  const subscription = world.client.subscription('in', { qos: 2 })
  world.client.connect().catch(() => undefined)
  const read = async (): Promise<void> => {
    for await (const message of subscription) got.push(message.text())
  }
  read().catch(() => undefined)
  // A filter at which a connection ended is tried again once the next has lived for a moment.
  await world.clock.advance(3000)
  const bytes = world.peers[0]?.bytes.length ?? 0
  world.client.destroy()
  await world.settle()
  return { broker, got, bytes }
}

function checkReceived(
  { broker, got }: { broker: SmallBroker; got: string[] },
  where: string,
): void {
  expect(broker.broken, where).toEqual([])
  expect(broker.undelivered, where).toBe(0)
  expect([...new Set(got)], where).toEqual(texts)
  const twice = got.filter((text) => levelOf(text) === 2)
  expect(twice.length, `${where}: QoS 2 once each`).toBe(30)
}

describe('60 messages from the server at QoS 1 and 2', () => {
  it('arrive over one connection that lives', async () => {
    checkReceived(await receiving([]), 'undisturbed')
  })

  it('a cut at each byte towards the server: acknowledgements that are lost', {
    timeout: 120_000,
  }, async () => {
    const { bytes } = await receiving([])
    for (let at = 0; at <= bytes; at++)
      checkReceived(await receiving([{ forward: at }]), `byte ${at}`)
  })

  it('a cut at each byte towards the client', { timeout: 120_000 }, async () => {
    for (let at = 0; at <= 800; at++)
      checkReceived(await receiving([{ backward: at }, { backward: (at * 7) % 150 }]), `byte ${at}`)
  })
})
