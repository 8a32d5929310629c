/**
 * What the bytes of a `client` input mean: operations of an application, of the peer, and of time.
 *
 * One byte chooses the operation (its high bit: do not let anything happen before the next one), the bytes behind it are its arguments. Every
 * sequence of bytes is a program. Each operation prints itself, for findings.
 */
import type { Message, Subscription } from '../../src/client/api/index.js'
import { Arguments, codes, filters, sizes, topics, waits } from './arguments.js'
import type { ClientRun } from './client-run.js'
import { PeerProgram } from './peer-program.js'
import type { Tape } from './tape.js'

/** Operations in one program. */
const mostOperations = 60

const qualities = [0, 1, 2] as const

/** Nothing happens before the next operation. */
const noWait = 0x80

/** The application's side of a run. */
export class Program {
  /** The other side's operations. */
  readonly peer: PeerProgram
  readonly #run: ClientRun
  readonly #given: Arguments
  readonly #subscriptions: Subscription[] = []
  readonly #iterators: AsyncIterator<unknown>[] = []
  readonly #messages: Message[] = []
  readonly #controllers: AbortController[] = []
  /** Time that has yet to pass. */
  #pause = 0
  readonly #handlings: { unsubscribe(): Promise<void>; detach(): void }[] = []

  constructor(run: ClientRun, tape: Tape) {
    this.#run = run
    this.#given = new Arguments(tape)
    this.peer = new PeerProgram(run, this.#given)
  }

  /** What was done, in words. */
  get text(): readonly string[] {
    return this.#given.text
  }

  /** Runs to the end of the tape. @throws OracleError */
  async play(): Promise<void> {
    for (let count = 0; count < mostOperations && !this.#given.tape.over; count++) {
      const byte = this.#given.tape.byte()
      const operation = operationOf(byte)
      this.#given.say(operation[0])
      operation[1](this)
      if ((byte & noWait) === 0) await this.#run.pass(this.#takePause())
    }
    await this.#run.pass(this.#takePause())
  }

  // Aborted already, abortable later, or never.
  #signal(flags: number): AbortSignal | undefined {
    if ((flags & 0x40) === 0) return undefined
    const controller = new AbortController()
    if (flags & 0x80) controller.abort()
    else this.#controllers.push(controller)
    return controller.signal
  }

  // The application

  connect(): void {
    const signal = this.#signal(this.#given.flags())
    this.#run.call('connect', () => this.#run.client.connect({ signal }))
  }

  publish(): void {
    const topic = this.#given.pick(topics)
    const payload = new Uint8Array(this.#given.pick(sizes)).fill(7)
    const flags = this.#given.flags()
    const properties = flags & 4 ? { messageExpiryInterval: 1, contentType: 'x', userProperties: [['k', 'v']] as [string, string][] } : undefined
    const options = {
      qos: qualities[(flags & 3) % 3] as 0 | 1 | 2,
      retain: (flags & 8) !== 0,
      flush: (flags & 16) !== 0,
      offline: flags & 32 ? ('queue' as const) : undefined,
      signal: this.#signal(flags),
      properties,
    }
    this.#run.call('publish', () => this.#run.client.publish(topic, payload, options))
  }

  post(): void {
    const topic = this.#given.pick(topics)
    const payload = new Uint8Array(this.#given.pick(sizes))
    this.#run.call('post', () => this.#run.client.post(topic, payload))
    payload.fill(9)
  }

  subscribe(): void {
    const list = [this.#given.pick(filters)]
    const flags = this.#given.flags()
    if (flags & 1) list.push(this.#given.pick(filters))
    const more = this.#given.flags()
    const options = {
      qos: qualities[((flags >> 1) & 3) % 3] as 0 | 1 | 2,
      ack: (['auto', 'manual', 'on-receive', 'auto'] as const)[(flags >> 3) & 3],
      onExit: more & 1 ? (more & 2 ? ('detach' as const) : ('unsubscribe' as const)) : undefined,
      requireQos: (more & 4) !== 0,
      noLocal: (more & 8) !== 0,
      lifetime: more & 16 ? ('borrowed' as const) : undefined,
      overflow: ((flags >> 3) & 3) === 2 ? ('drop-oldest' as const) : undefined,
      signal: this.#signal(flags),
      until: this.#signal(more),
      retainHandling: (more & 32 ? 2 : 0) as 0 | 2,
    }
    this.#run.call('subscribe', () => {
      const subscription = this.#run.client.subscription(list, options)
      this.#subscriptions.push(subscription)
      return subscription.ready
    })
  }

  listen(): void {
    const filter = this.#given.pick(filters)
    const flags = this.#given.flags()
    const handler = (message: Message): unknown => {
      this.#run.deliver('handled', message)
      if (flags & 8) throw new Error('the handler failed')
      if (flags & 16) return new Promise((resolve) => this.#run.clock.setTimer(() => resolve(undefined), 50))
      if (flags & 32) return new Promise(() => undefined)
      return undefined
    }
    const borrowed = (flags & 0xc0) === 0x80
    // Where it is called depends on how the bytes were cut.
    if (borrowed) this.#run.endComparison()
    const options = {
      qos: qualities[(flags & 3) % 3] as 0 | 1 | 2,
      concurrency: 1 + (flags & 4),
      lifetime: borrowed ? ('borrowed' as const) : undefined,
      signal: this.#signal(flags),
    }
    this.#run.call('listen', async () => {
      const handling = await this.#run.client.listen(filter, handler, options)
      this.#handlings.push(handling)
      this.#run.track('listening', handling.done)
    })
  }

  request(): void {
    const topic = this.#given.pick(topics)
    const flags = this.#given.flags()
    this.#run.call('request', async () => {
      const message = await this.#run.client.request(topic, 'q', {
        qos: qualities[(flags & 3) % 3] as 0 | 1 | 2,
        timeout: 500,
        signal: this.#signal(flags),
      })
      this.#run.deliver('answered', message)
    })
  }

  respond(): void {
    const filter = this.#given.pick(filters)
    const flags = this.#given.flags()
    this.#run.call('respond', async () => {
      const handling = await this.#run.client.respond(
        filter,
        (message) => {
          if (flags & 1) throw new Error('no answer')
          return message.payload
        },
        { qos: 1 },
      )
      this.#handlings.push(handling)
      this.#run.track('responding', handling.done)
    })
  }

  unsubscribe(): void {
    const list = [this.#given.pick(filters), this.#given.pick(filters)]
    this.#run.call('unsubscribe', () => this.#run.client.unsubscribe(list))
  }

  next(): void {
    const subscription = this.#given.of(this.#subscriptions)
    const flags = this.#given.flags()
    if (subscription === undefined) return
    this.#run.call('next', async () => {
      const message = await subscription.next({ timeout: flags & 1 ? 100 : undefined, signal: this.#signal(flags) })
      if (message !== undefined) this.#take(message)
    })
  }

  read(): void {
    const subscription = this.#given.of(this.#subscriptions)
    this.#run.call('read', () => {
      const message = subscription?.read()
      if (message !== undefined) this.#take(message)
    })
  }

  #take(message: Message): void {
    this.#run.deliver('read', message)
    this.#messages.push(message)
    this.#messages.splice(0, this.#messages.length - 8)
  }

  ack(): void {
    const message = this.#given.of(this.#messages)
    const code = this.#given.pick(codes)
    this.#run.call('ack', () => void this.#run.log.push(`ack ${String(message?.ack(code))}`))
  }

  keepMessage(): void {
    const message = this.#given.of(this.#messages)
    this.#run.call('keep', () => message?.detach())
  }

  iterate(): void {
    const subscription = this.#given.of(this.#subscriptions)
    const flags = this.#given.flags()
    if (subscription === undefined) return
    this.#run.call('iterate', () => {
      if (flags & 4) return void this.#iterators.push(asIterator(subscription.readable().getReader()))
      this.#iterators.push(flags & 1 ? subscription.batches(flags & 2 ? 2 : undefined) : subscription[Symbol.asyncIterator]())
    })
  }

  step(): void {
    const iterator = this.#given.of(this.#iterators)
    this.#run.call('step', async () => {
      const result = await iterator?.next()
      if (result?.done === true || result === undefined) return
      for (const message of [result.value].flat()) this.#take(message as Message)
    })
  }

  leave(): void {
    const iterator = this.#given.of(this.#iterators)
    this.#run.call('leave', async () => void (await iterator?.return?.()))
  }

  end(): void {
    const subscription = this.#given.of(this.#subscriptions)
    const flags = this.#given.flags()
    if (subscription === undefined) return
    if (flags & 1) this.#run.call('detach', () => subscription.detach())
    else this.#run.call('end', () => subscription.unsubscribe())
  }

  endListening(): void {
    const handling = this.#given.of(this.#handlings)
    const flags = this.#given.flags()
    if (handling === undefined) return
    if (flags & 1) this.#run.call('detach handler', () => handling.detach())
    else this.#run.call('end handler', () => handling.unsubscribe())
  }

  reconnect(): void {
    const force = (this.#given.flags() & 1) !== 0
    this.#run.call('reconnect', () => this.#run.client.reconnect({ force }))
  }

  abort(): void {
    this.#controllers.shift()?.abort()
  }

  disconnect(): void {
    const flags = this.#given.flags()
    const options = {
      timeout: this.#given.pick(waits),
      signal: this.#signal(flags),
      reasonCode: flags & 1 ? 4 : undefined,
      reasonString: flags & 2 ? 'because'.repeat(9) : undefined,
      sessionExpiryInterval: flags & 4 ? 10 : undefined,
    }
    this.#run.call(flags & 8 ? 'drain' : 'disconnect', () => (flags & 8 ? this.#run.client.drain(options) : this.#run.client.disconnect(options)))
  }

  destroy(): void {
    this.#run.call('destroy', () => this.#run.client.destroy())
  }

  flush(): void {
    const { client } = this.#run
    this.#run.call('flush', () => client.flush())
    this.#run.call('writable', () => client.writable)
  }

  clear(): void {
    this.#run.call('clear', () => this.#run.client.outbound.clear())
  }

  reauthenticate(): void {
    this.#run.call('reauthenticate', () => this.#run.client.reauthenticate())
  }

  watch(): void {
    this.#run.call('watch', () => {
      const stop = this.#run.client.on('packet', ({ packet, direction }) => {
        if (packet.type === 'publish' && direction === 'in') this.#run.log.push(`watched ${packet.topic}`)
      })
      if (this.#given.flags() & 1) stop()
    })
  }

  // Time

  // The time passes with the next operation that waits.
  wait(): void {
    this.#pause += this.#given.pick(waits)
  }

  sleep(): void {
    this.#run.sleep(this.#given.pick(waits))
  }

  #takePause(): number {
    const pause = this.#pause
    this.#pause = 0
    return pause
  }
}

function asIterator(reader: ReadableStreamDefaultReader<unknown>): AsyncIterator<unknown> {
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done: true, value: undefined } : { done: false, value }
    },
    return: async () => {
      await reader.cancel()
      return { done: true, value: undefined }
    },
  }
}

type Operation = readonly [name: string, perform: (program: Program) => void]

/** Operations by number, 64 at most. Frequent ones stand here more than once; new ones go to the end, or old inputs change their meaning. */
const operations: readonly Operation[] = [
  ['connect', (program) => program.connect()],
  ['publish', (program) => program.publish()],
  ['subscribe', (program) => program.subscribe()],
  ['a message', (program) => program.peer.bring()],
  ['answer all', (program) => program.peer.answerAll()],
  ['answer one', (program) => program.peer.answerOne()],
  ['wait', (program) => program.wait()],
  ['next', (program) => program.next()],
  ['read', (program) => program.read()],
  ['ack', (program) => program.ack()],
  ['listen', (program) => program.listen()],
  ['request', (program) => program.request()],
  ['respond', (program) => program.respond()],
  ['unsubscribe', (program) => program.unsubscribe()],
  ['post', (program) => program.post()],
  ['cut', (program) => program.peer.cut()],
  ['answer badly', (program) => program.peer.answerBadly()],
  ['messages', (program) => program.peer.bring(4)],
  ['an acknowledgement', (program) => program.peer.acknowledge()],
  ['an answer unasked', (program) => program.peer.answerUnasked()],
  ['CONNACK', (program) => program.peer.connack()],
  ['DISCONNECT', (program) => program.peer.sayGoodbye()],
  ['AUTH', (program) => program.peer.authenticate()],
  ['PINGRESP', (program) => program.peer.pong()],
  ['bytes', (program) => program.peer.raw()],
  ['stall', (program) => program.peer.stall()],
  ['the peer changes its manner', (program) => program.peer.turn()],
  ['dials fail', (program) => program.peer.failDials()],
  ['reconnect', (program) => program.reconnect()],
  ['abort', (program) => program.abort()],
  ['disconnect', (program) => program.disconnect()],
  ['flush', (program) => program.flush()],
  ['clear', (program) => program.clear()],
  ['reauthenticate', (program) => program.reauthenticate()],
  ['iterate', (program) => program.iterate()],
  ['step', (program) => program.step()],
  ['leave', (program) => program.leave()],
  ['end', (program) => program.end()],
  ['end listening', (program) => program.endListening()],
  ['keep', (program) => program.keepMessage()],
  ['sleep', (program) => program.sleep()],
  ['watch', (program) => program.watch()],
  ['destroy', (program) => program.destroy()],
  ['publish', (program) => program.publish()],
  ['a message', (program) => program.peer.bring()],
  ['answer all', (program) => program.peer.answerAll()],
  ['wait', (program) => program.wait()],
  ['bytes', (program) => program.peer.raw()],
  ['a reply', (program) => program.peer.reply()],
]

// Numbers that are not taken yet stand for the first ones.
function operationOf(byte: number): Operation {
  const number = byte & 0x3f
  return (operations[number] ?? operations[number & 0x0f]) as Operation
}

/** Numbers of operations by name, for those who write programs. */
export const operationNumbers: ReadonlyMap<string, number> = new Map(operations.map(([name], index) => [name, index] as const).reverse())
