/**
 * One broker of the world of many connections: that of `mqwire/testing`, with refusals of single messages, and a record of each message that it takes.
 */
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import { type Refused, refusing } from '../play.js'
import { payloadName } from '../reader.js'
import type { ManyWorld } from './world.js'

/** A broker, and what the world keeps of it. */
export class WorldBroker {
  readonly name: string
  readonly memory: MemoryBroker
  /** How often it lost its sessions. */
  losses = 0

  /** @param number from 0 */
  constructor(name: string, number: number, { clock, setup, history, schedule }: ManyWorld) {
    this.name = name
    const refused = new Map<string, Refused>()
    for (const op of schedule.ops)
      if (op.do === 'publish' && op.refused !== undefined && (op.refused.at ?? number) === number)
        refused.set(`p${op.n}`, op.refused)
    this.memory = new MemoryBroker({
      clock,
      receiveMaximum: setup.brokerReceiveMaximum,
      authorizePublish: refusing(refused),
    })
    this.memory.on('hookerror', ({ error }) =>
      history.report('world', `a hook of the broker threw ${error}`),
    )
    this.memory.on('publish', ({ message: { from: clientId, payload: bytes, topic, qos } }) => {
      // What the world feeds comes from nobody.
      if (clientId === undefined) return
      const taken = {
        seq: history.next(),
        at: clock.now(),
        broker: name,
        clientId,
        name: payloadName(bytes),
        topic,
        qos,
        bytes,
      }
      history.note(`  ${name} takes ${taken.name} from ${clientId}`)
      history.taken.push(taken)
    })
  }

  restart(keepSessions: boolean): void {
    if (!keepSessions) this.losses += 1
    this.memory.restart({ keepSessions })
  }
}
