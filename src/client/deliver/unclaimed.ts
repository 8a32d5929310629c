/**
 * Messages without a subscription: held for a while after a session was resumed, otherwise
 * acknowledged and reported.
 */
import { tally } from '../../common/counters.js'
import type { CancelTimer } from '../platform.js'
import type { Budget } from './budget.js'
import type { Consumer } from './consumer.js'
import type { DeliveredMessage } from './message.js'
import type { DeliverHost, Origin } from './ports.js'

/** The unclaimed messages of one client. */
export class Unclaimed {
  readonly #host: DeliverHost<Consumer>
  readonly #budget: Budget
  readonly #messages: DeliveredMessage[] = []
  #holding = false
  #stopHold: CancelTimer | undefined

  constructor(host: DeliverHost<Consumer>, budget: Budget) {
    this.#host = host
    this.#budget = budget
  }

  /** Session Present is 1: holds messages for subscriptions that are yet to be made. */
  hold(): void {
    this.#holding = true
    this.#stopHold = this.#host.platform.setTimer(() => {
      this.#holding = false
      const { unclaimedHold } = this.#host.options
      const all = this.#drain()
      const count = all.length === 1 ? '1 message' : `${all.length} messages`
      if (all.length > 0)
        this.#host.log(
          'warn',
          `${count} acknowledged unread: nobody subscribed within unclaimedHold (${unclaimedHold} ms)`,
        )
      for (const message of all) this.#report(message)
    }, this.#host.options.unclaimedHold)
  }

  /** A message has no subscription. */
  add(message: DeliveredMessage): void {
    if (!this.#holding || message.settled) return this.#report(message)
    message.own()
    this.#messages.push(message)
    this.#budget.add(message.size)
  }

  /** Removes and returns messages that now have a subscription. `originOf` gives its filter. */
  claim(originOf: (topic: string) => Origin | undefined): DeliveredMessage[] {
    const claimed: DeliveredMessage[] = []
    for (const message of this.#messages.splice(0)) {
      const origin = originOf(message.topic)
      if (origin === undefined) this.#messages.push(message)
      else claimed.push(Object.assign(message, { origin }))
    }
    return claimed
  }

  /** The client has ended: releases everything. */
  stop(): void {
    this.#stopHold?.()
    this.#holding = false
    this.#drain()
  }

  #drain(): DeliveredMessage[] {
    const all = this.#messages.splice(0)
    for (const message of all) this.#budget.add(-message.size)
    return all
  }

  #report(message: DeliveredMessage): void {
    tally(this.#host, 'unclaimed')
    message.settle(0)
    this.#host.log('debug', 'nobody subscribed to ', message.topic)
    this.#host.events.emit('unclaimed', { message })
  }
}
