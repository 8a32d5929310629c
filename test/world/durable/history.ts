/**
 * What happened in one run of the durable world, over all processes: what was published and what became of it, what was fed and who handled it,
 * findings. A record only.
 */
import type { MqttError } from '../../../src/errors.js'
import { Findings } from '../play.js'
import type { Op } from './schedule.js'

export interface Outgoing {
  readonly op: Extract<Op, { do: 'publish' | 'enqueue' }>
  readonly name: string
  /** Number of the client that took it. */
  readonly client: number
  state: 'pending' | 'fulfilled' | 'rejected'
  error: MqttError | undefined
  restored: boolean
  /** Whoever asked was told that it is given up, in this or a later process. */
  told: string | undefined
}

export interface Fed {
  readonly op: Extract<Op, { do: 'feed' }>
  readonly name: string
  /** The broker had a session that wanted it, when so many sessions had been lost; undefined: it had none. */
  readonly losses: number | undefined
  /** Ids under which it was handed out. */
  readonly ids: Set<string>
  handed: number
  handled: number
}

export class History extends Findings {
  readonly outgoing = new Map<string, Outgoing>()
  readonly fed = new Map<string, Fed>()
  /** Which message each id was given to. */
  readonly named = new Map<string, string>()
  /** Connections whose CONNACK never came, where the one that came after it cannot know what it said. */
  unanswered = 0
}
