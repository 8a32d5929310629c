/**
 * Two walks through the client, followed from room to room: a PUBLISH from the socket to the loop body with its PUBACK back, and a publish at QoS 2.
 *
 * It runs as a bundle in which every function says where it is (`.ci/house.mjs`); elsewhere the lists stay empty.
 */
import { BaseClient } from '../../src/client/client.js'
import { VirtualClock } from '../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../src/testing/virtual-platform.js'
import { StalledTransport } from '../client/stalled-transport.js'

const trail: string[] = []
let crossings: string[] = []

/** What lies about in every room: whoever uses a tool stays where he is. */
const tools: readonly string[] = ['client/common']

/** Called by every function as it is entered, with the room that it is in; gives what is to be called as it is left. */
function enter(room: string): () => void {
  const from = trail.at(-1)
  const stays = from === undefined || from === room || tools.includes(room)
  if (!stays) crossings.push(`${from} > ${room}`)
  trail.push(from !== undefined && stays ? from : room)
  return () => void trail.pop()
}
Object.assign(globalThis, { traceEnter: enter })

/** What a part of the program calls between two rooms. */
async function crossed(part: () => unknown, clock: VirtualClock): Promise<string[]> {
  crossings = []
  await part()
  await clock.settle()
  return crossings.filter((crossing) => !crossing.includes('test') && !crossing.includes('testing'))
}

/** A client that is connected to a peer which says what the test says. */
async function connected() {
  const clock = new VirtualClock()
  const transport = new StalledTransport()
  const client = new BaseClient(virtualPlatform(clock), { url: 'x://a', transport: () => transport }, { keepAlive: false, clientId: 'a' })
  const connecting = client.connect()
  await clock.settle()
  transport.feed('20 03 00 00 00')
  await connecting
  await clock.settle()
  return { client, clock, transport }
}

/** Room by room: the third message at QoS 1 of a loop, and its acknowledgement. */
export async function inbound(): Promise<string[]> {
  const { client, clock, transport } = await connected()
  const subscribing = client.subscribe('t', { qos: 1 })
  await clock.settle()
  const subscribe = Buffer.from(transport.written).lastIndexOf(0x82)
  const [high = 0, low = 0] = transport.written.slice(subscribe + 2, subscribe + 4)
  transport.feed(`90 04 ${hexOf(high)} ${hexOf(low)} 00 01`)
  const subscription = await subscribing
  const loop = (async () => {
    for await (const message of subscription) if (message.payload.length > 0) void message.topic
  })()
  await clock.settle()
  let found: string[] = []
  for (const id of ['01', '02', '03']) {
    const before = transport.written.length
    found = await crossed(() => transport.feed(`32 07 00 01 74 00 ${id} 00 61`), clock)
    if (transport.written.length !== before + 4) throw new Error('no PUBACK')
  }
  client.destroy()
  await loop
  return found
}

/** Room by room: the third publish at QoS 2, from the call to its receipt. */
export async function outbound(): Promise<string[]> {
  const { client, clock, transport } = await connected()
  let found: string[] = []
  for (let number = 0; number < 3; number++) {
    found = await crossed(async () => {
      const sent = client.publish('t', 'a', { qos: 2 })
      await clock.settle()
      const [high = 0, low = 0] = transport.written.slice(-4, -2)
      transport.feed(`50 02 ${hexOf(high)} ${hexOf(low)}`)
      await clock.settle()
      transport.feed(`70 02 ${hexOf(high)} ${hexOf(low)}`)
      await sent
    }, clock)
  }
  client.destroy()
  return found
}

const hexOf = (byte: number): string => byte.toString(16).padStart(2, '0')
