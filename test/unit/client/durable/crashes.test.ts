/**
 * A process that dies at every step of its disk, and at every packet: what the next process finds is enough to keep every promise.
 *
 * A queue and a client share the store. An entry whose `publish()` fulfilled arrives, at QoS 2 once; a message that came in is handled at least once, and
 * each time under the same id; the next process ends with nothing left in the store.
 */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import { type Fault, SimulatedDisk, simulatedStore } from '../../store/simulated-disk.js'
import { Device, kill, settled } from './rig.js'

/** When the process dies. */
interface Death {
  /** At which step of the disk, and how much of what is appended gets through: nothing, all but the last byte, or all. */
  readonly step?: number
  readonly through?: 'nothing' | 'torn' | 'all'
  /** Or at which packet, before it is written or read. */
  readonly packet?: number
  /** What is not synced goes with the process (power loss), or stays. */
  readonly unsynced?: 'lost' | 'kept'
}

const entries = [1, 2, 2, 1, 2].map((qos, at) => ({ qos: qos as 1 | 2, text: `entry ${at}`, topic: `out/${at % 2}` }))
const messages = [1, 2, 2, 1].map((qos, at) => ({ qos: qos as 1 | 2, text: `message ${at}` }))

interface Course {
  readonly steps: number
  readonly packets: number
  readonly findings: readonly string[]
}

const lengthOf = (through: Death['through'], length: number): number =>
  through === 'all' ? length : through === 'torn' ? Math.max(0, length - 1) : 0

/** The first process, as far as it comes; gives the entries that were promised. */
async function firstProcess(device: Device, peer: BaseClient, death: Death): Promise<string[]> {
  const promised: string[] = []
  let packets = 0
  device.onPacket = (_packet, client) => {
    packets += 1
    if (packets === death.packet) kill(device, client)
  }
  const work = async (): Promise<void> => {
    const { queue } = await device.start()
    const put = entries.map(async ({ topic, text, qos }) => {
      await queue.publish(topic, text, { qos })
      promised.push(text)
    })
    const sent = messages.map(({ text, qos }) => peer.publish('in/1', text, { qos }))
    await Promise.all([...put, ...sent])
  }
  work().catch(() => undefined)
  await settled(25)
  return promised
}

/** Both processes. Without a death there is one that comes to its end. */
async function run(death: Death): Promise<Course> {
  const device = new Device()
  const disk = new SimulatedDisk()
  device.store = simulatedStore(disk)
  const peer = await device.peer()
  // The broker knows the device, so that what is sent to it is kept for it.
  const early = await device.world.connect('mqtt://broker.example', { clientId: 'device', sessionExpiryInterval: 3600, cleanStart: false })
  await early.subscribe('in/#', { qos: 2, onExit: 'detach' })
  await early.disconnect({ sessionExpiryInterval: 3600 })
  disk.fault = (step, length): Fault | undefined => (step === death.step ? { code: 'crash', bytes: lengthOf(death.through, length) } : undefined)
  const promised = await firstProcess(device, peer, death)
  const course = { steps: disk.steps, packets: device.packets.length }
  device.onPacket = undefined
  for (const client of device.clients) client.destroy()
  const rest = disk.written.length - disk.synced
  device.store = simulatedStore(disk.afterCrash(death.unsynced === 'kept' ? rest : 0))
  const { queue } = await device.start()
  await settled(40)
  const findings = [...lost(device, promised), ...unheard(device)]
  const left: string[] = []
  for await (const [key] of device.store.entries()) if (key.includes('/o/') || key.includes('/e/')) left.push(key)
  if (left.length + queue.size > 0) findings.push(`left: ${left.join()}, ${queue.size}`)
  await queue.close({ timeout: 0 })
  await device.world.close()
  return { ...course, findings }
}

function lost(device: Device, promised: readonly string[]): string[] {
  return entries.flatMap(({ text, qos }) => {
    const times = device.arrived.filter((each) => each === text).length
    if (times === 0 && promised.includes(text)) return [`${text} never arrived`]
    return qos === 2 && times > 1 ? [`${text} arrived ${times} times`] : []
  })
}

function unheard(device: Device): string[] {
  const found = messages.flatMap(({ text }) => {
    const ids = new Set(device.seen.filter((each) => each.text === text).map(({ id }) => id))
    return ids.size === 1 ? [] : [`${text} has ${ids.size} ids`]
  })
  const texts = new Map<string | undefined, Set<string>>()
  for (const { id, text } of device.seen) texts.set(id, (texts.get(id) ?? new Set()).add(text))
  for (const [id, of] of texts) if (of.size > 1) found.push(`${id} is the id of ${[...of].join(' and ')}`)
  return found
}

async function findings(deaths: readonly Death[]): Promise<string[]> {
  const found: string[] = []
  for (const death of deaths) {
    const course = await run(death)
    found.push(...course.findings.map((finding) => `${JSON.stringify(death)}: ${finding}`))
  }
  return found
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1)

describe('a process that dies', () => {
  it('at no moment comes to its end', async () => {
    const { findings: found, steps, packets } = await run({})
    expect(found).toEqual([])
    expect(steps).toBeGreaterThan(10)
    expect(packets).toBeGreaterThan(20)
  })

  it.each(['nothing', 'torn', 'all'] as const)(
    'at each step of the disk, when %s of the write got through',
    async (through) => {
      const { steps } = await run({})
      expect(await findings(upTo(steps).map((step) => ({ step, through, unsynced: 'lost' })))).toEqual([])
      expect(await findings(upTo(steps).map((step) => ({ step, through, unsynced: 'kept' })))).toEqual([])
    },
    60_000,
  )

  it('at each packet', async () => {
    const { packets } = await run({})
    expect(await findings(upTo(packets).map((packet) => ({ packet, unsynced: 'lost' })))).toEqual([])
  }, 60_000)
})
