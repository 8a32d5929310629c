/**
 * Writes programs at random, from a seed: about twenty calls of one or two clients in any order and any overlap.
 *
 * The same seed is the same program for ever. Pure. It knows the API and nothing of what is promised: a call that makes no sense is welcome.
 */
import { Random } from '../random.js'
import type { AbortTime, Call, ClientPlan, EndpointName, LinkPlan, PayloadPlan, Program, Reading, Step } from './program.js'
import { wrongCalls } from './wrong.js'

const topics = ['t/1', 't/2', 't/2/x', 'u/1']
const filters = ['t/1', 't/+', 't/#', '#', 'u/1', 't/2/x', '+/1', '$share/g/t/#']
const forms = ['text', 'bytes', 'buffer', 'offset', 'array-buffer', 'data-view', 'shared'] as const
const events = ['state', 'connect', 'disconnect', 'reconnecting', 'dial', 'connecterror', 'drop', 'sessionlost', 'packet', 'error'] as const
const wrongNames = Object.keys(wrongCalls)

/** The kinds of programs: what most of them are about. */
type Mood = 'quiet' | 'dials' | 'losses' | 'crowd' | 'ends'

/** The program of a seed. */
export function generate(seed: number): Program {
  return new Writer(seed).program()
}

class Writer {
  readonly #random: Random
  readonly #seed: number
  readonly #mood: Mood
  #signals: AbortTime[] = []
  #subscriptions: number[] = []
  #version = 5

  constructor(seed: number) {
    this.#seed = seed
    this.#random = new Random(seed * 7919 + 17)
    this.#mood = this.#random.pick(['quiet', 'quiet', 'dials', 'losses', 'crowd', 'ends'])
  }

  program(): Program {
    const random = this.#random
    const clients = Array.from({ length: random.chance(0.3) ? 2 : 1 }, () => this.#client())
    const steps = this.#steps(clients)
    const end = random.pick(['disconnect', 'disconnect', 'destroy', 'drain', 'dispose'] as const)
    return { seed: this.#seed, clients, signals: this.#signals, link: this.#link(), steps, end }
  }

  #link(): LinkPlan {
    const random = this.#random
    const slow = random.chance(0.08) ? { rate: random.pick([50, 500]) } : {}
    return { latency: random.pick([0, 1, 1, 5, 20]), pieces: random.pick(['whole', 'whole', 'random', 'joined'] as const), ...slow }
  }

  #client(): ClientPlan {
    const random = this.#random
    const old = random.chance(0.15)
    if (old) this.#version = 4
    const dials = this.#mood === 'dials'
    const attempts = random.chance(dials ? 0.6 : 0.15) ? { maxAttempts: random.between(1, 4) } : {}
    return {
      endpoints: this.#endpoints(dials ? 0.6 : 0.1),
      options: this.#options(old),
      backoff: random.pick([20, 50, 120]),
      ...attempts,
      ...(random.chance(0.5) ? { stableAfter: random.pick([0, 30, 200]) } : {}),
      ...(!old && random.chance(0.06) ? { auth: true } : {}),
      ...(random.chance(0.2) ? { will: true } : {}),
    }
  }

  #endpoints(strange: number): EndpointName[] {
    const random = this.#random
    const good = random.pick(['good', 'good', 'other', 'late'] as const)
    if (!random.chance(strange)) return [good]
    const odd = Array.from({ length: random.between(1, 2) }, () => random.pick(['dead', 'hang', 'silent', 'busy', 'banned'] as const))
    if (random.chance(0.25)) return odd
    return random.chance(0.7) ? [...odd, good] : [good, ...odd]
  }

  #options(old: boolean): Record<string, unknown> {
    const random = this.#random
    const options: Record<string, unknown> = {}
    const maybe = (name: string, chance: number, values: readonly unknown[]): void => {
      if (random.chance(chance)) options[name] = random.pick(values)
    }
    if (old) options['protocolVersion'] = 4
    else {
      maybe('protocolVersion', 0.05, ['auto'])
      maybe('sessionExpiryInterval', 0.25, [0, 1, 60])
      maybe('receiveMaximum', 0.3, [1, 2, 10])
      maybe('topicAliasMaximum', 0.15, [0, 5])
      maybe('userProperties', 0.1, [[['name', 'value']]])
      maybe('requestResponseInformation', 0.1, [true])
    }
    maybe('clientId', 0.4, ['own'])
    if (options['clientId'] !== undefined) maybe('cleanStart', 0.6, [false, false, true])
    maybe('keepAlive', 0.3, [false, 1, 2, 5])
    maybe('connectTimeout', 0.3, [100, 300])
    maybe('firstConnect', this.#mood === 'dials' ? 0.5 : 0.15, ['wait', 'reject'])
    maybe('reconnect', 0.1, [false])
    maybe('resubscribe', 0.1, ['always'])
    maybe('maxFiltersPerSubscribe', 0.1, [1, 2])
    maybe('stats', 0.3, [true])
    maybe('unclaimedHold', 0.2, [0, 200])
    maybe('subscriptions', 0.15, [{ buffer: 1 }, { buffer: 2, overflow: 'drop-oldest' }, { overflow: 'drop-newest', buffer: 3 }])
    if (random.chance(0.5)) options['outbound'] = this.#outbound()
    return options
  }

  #outbound(): Record<string, unknown> {
    const random = this.#random
    const outbound: Record<string, unknown> = {}
    if (random.chance(0.4)) outbound['maxQueuedMessages'] = random.pick([1, 2, 5])
    if (random.chance(0.2)) outbound['maxQueuedBytes'] = random.pick([1000, 70_000])
    if (random.chance(0.3)) outbound['maxInflight'] = random.pick([1, 2])
    if (random.chance(0.5)) outbound['overflow'] = random.pick(['wait', 'reject', 'drop-newest', 'drop-oldest'])
    if (random.chance(0.4)) outbound['offline'] = { qos0: random.pick(['queue', 'reject']), qos1: random.pick(['queue', 'reject']) }
    if (random.chance(0.15)) outbound['ackTimeout'] = random.pick([10, 200])
    if (random.chance(0.15)) outbound['ttl'] = random.pick([1, 100])
    if (random.chance(0.15)) outbound['onSessionLost'] = random.pick(['republish', 'reject'])
    return outbound
  }

  #steps(clients: readonly ClientPlan[]): Step[] {
    const random = this.#random
    const steps: Step[] = []
    const count = random.between(8, 26)
    clients.forEach((_plan, client) => {
      const first = random.chance(0.92)
      if (first) steps.push({ id: steps.length, client, after: 0, wait: random.chance(0.6), call: { call: 'connect', ...this.#signal(0.08) } })
    })
    while (steps.length < count) steps.push(this.#step(steps.length, random.below(clients.length), steps.length / count))
    return steps
  }

  #step(id: number, client: number, progress: number): Step {
    const random = this.#random
    const call = this.#call(progress)
    if (call.call === 'subscribe') this.#subscriptions.push(id)
    const after = random.chance(0.55) ? 0 : random.pick([1, 3, 10, 40, 150])
    return { id, client, after, wait: random.chance(0.3), call }
  }

  #signal(chance: number): { readonly signal?: number } {
    const random = this.#random
    if (!random.chance(chance)) return {}
    if (this.#signals.length > 0 && random.chance(0.4)) return { signal: random.below(this.#signals.length) }
    this.#signals.push(random.pick(['before', 'turn', 'turn', 0, 1, 2, 5, 30]))
    return { signal: this.#signals.length - 1 }
  }

  #payload(): PayloadPlan {
    const random = this.#random
    const size = random.chance(0.05) ? random.pick([65_535, 65_536, 300_000]) : random.pick([0, 5, 20, 64, 64, 500, 4096])
    return { topic: random.pick(topics), size, form: random.pick(forms) }
  }

  #publish(): Call {
    const random = this.#random
    const options: Record<string, unknown> = {}
    if (random.chance(0.12)) options['retain'] = true
    if (this.#version === 5 && random.chance(0.15))
      options['properties'] = {
        userProperties: [['n', 'v']],
        contentType: 'text/plain',
        ...(random.chance(0.3) ? { messageExpiryInterval: 30 } : {}),
      }
    if (random.chance(0.08)) options['flush'] = true
    if (random.chance(0.06)) options['ackTimeout'] = random.pick([5, 50, 500])
    if (random.chance(0.06)) options['ttl'] = random.pick([1, 30])
    if (random.chance(0.1)) options['offline'] = random.pick(['queue', 'reject'])
    if (random.chance(0.08)) options['overflow'] = random.pick(['wait', 'reject', 'drop-newest', 'drop-oldest'])
    const qos = random.pick([0, 1, 1, 2, 2] as const)
    return { call: 'publish', ...this.#payload(), qos, options, ...this.#signal(0.12), ...(random.chance(0.08) ? { forget: true } : {}) }
  }

  #subscribe(): Call {
    const random = this.#random
    const through = random.pick(['subscribe', 'subscribe', 'subscription', 'listen'] as const)
    const asked = Array.from({ length: random.chance(0.7) ? 1 : random.between(2, 3) }, () => random.pick(filters))
    const options: Record<string, unknown> = { qos: random.pick([0, 1, 2, 2]) }
    if (random.chance(0.1)) options['buffer'] = random.pick([1, 3])
    if (random.chance(0.1)) options['overflow'] = random.pick(['drop-oldest', 'drop-newest'])
    if (random.chance(0.15)) options['onExit'] = random.pick(['unsubscribe', 'detach'])
    if (random.chance(0.08)) options['lifetime'] = 'borrowed'
    if (this.#version === 5 && random.chance(0.08)) options['retainHandling'] = random.pick([1, 2])
    if (this.#version === 5 && random.chance(0.05)) options['retainAsPublished'] = true
    if (through === 'listen' && random.chance(0.4)) options['concurrency'] = random.pick([2, 4])
    const until = random.chance(through === 'listen' ? 0.2 : 0.08) ? this.#signal(1).signal : undefined
    const inside = through === 'listen' && random.chance(0.35) ? { inside: this.#inner() } : {}
    const plan = { filters: asked, options, through, reading: this.#reading(), ...inside }
    return { call: 'subscribe', ...plan, ...this.#signal(0.12), ...(until === undefined ? {} : { until }) }
  }

  #reading(): Reading {
    const random = this.#random
    return {
      how: random.pick(['loop', 'loop', 'loop', 'next', 'batches', 'none']),
      ...(random.chance(0.25) ? { most: random.between(1, 3) } : {}),
      ...(random.chance(0.2) ? { hold: random.pick([0, 5, 60]) } : {}),
      ...(random.chance(0.15) ? { acks: true } : {}),
    }
  }

  /** What a listener or a handler does. */
  #inner(): Call {
    const random = this.#random
    const kind = random.pick([
      'publish',
      'publish',
      'post',
      'unsubscribe',
      'reconnect',
      'setBrokers',
      'disconnect',
      'destroy',
      'stats',
      'connect',
    ] as const)
    if (kind === 'publish') return { call: 'publish', topic: 'u/1', size: 20, form: 'bytes', qos: random.pick([0, 1, 2] as const), options: {} }
    if (kind === 'disconnect') return { call: 'disconnect', timeout: random.pick([0, 100]) }
    return this.#named(kind)
  }

  #call(progress: number): Call {
    const random = this.#random
    const busy = this.#mood === 'crowd'
    const roll = random.float()
    if (roll < (busy ? 0.55 : 0.34)) return random.chance(0.12) ? this.#named('post') : this.#publish()
    if (roll < 0.58) return this.#subscribe()
    const ends = this.#mood === 'ends' ? 0.5 : 0.75
    if (progress > ends && random.chance(0.12)) return this.#named(random.pick(['drain', 'disconnect', 'destroy', 'dispose'] as const))
    if (this.#mood === 'losses' && random.chance(0.3)) return this.#named(random.pick(['cut', 'cut', 'stall', 'down', 'reconnect'] as const))
    if (this.#mood === 'dials' && random.chance(0.3)) return this.#named(random.pick(['setBrokers', 'connect', 'reconnect', 'down', 'cut'] as const))
    const common = ['unsubscribe', 'leave', 'leave', 'request', 'respond', 'setBrokers', 'reconnect', 'connect', 'connect', 'on', 'on'] as const
    const rare = ['flush', 'writable', 'stats', 'clear', 'wrong', 'wrong', 'wrong', 'reauthenticate'] as const
    return this.#named(random.chance(0.65) ? random.pick(common) : random.pick(rare))
  }

  #named(kind: Exclude<Call['call'], 'publish' | 'subscribe'>): Call {
    const random = this.#random
    switch (kind) {
      case 'post':
        return { call: 'post', ...this.#payload() }
      case 'request':
        return {
          call: 'request',
          ...this.#payload(),
          topic: 'q/1',
          size: random.pick([5, 500]),
          timeout: random.pick([50, 300, 1000]),
          ...this.#signal(0.2),
        }
      case 'respond':
        return { call: 'respond', filter: 'q/1', ...(random.chance(0.3) ? { fails: true } : {}) }
      case 'connect':
      case 'reauthenticate':
        return { call: kind, ...this.#signal(0.25) }
      case 'unsubscribe':
        return { call: kind, filters: [random.pick(filters)], ...this.#signal(0.12), ...(random.chance(0.2) ? { forget: true } : {}) }
      case 'leave':
        return {
          call: 'leave',
          of: this.#subscriptions.length === 0 ? 0 : random.pick(this.#subscriptions),
          how: random.pick(['unsubscribe', 'detach', 'dispose'] as const),
        }
      case 'setBrokers':
        return { call: 'setBrokers', endpoints: this.#endpoints(0.4) }
      case 'reconnect':
        return { call: 'reconnect', force: random.chance(0.5), ...(random.chance(0.2) ? { forget: true } : {}) }
      case 'drain':
      case 'disconnect':
        return { call: kind, timeout: random.pick([0, 50, 1000, 1000]), ...this.#signal(0.15) }
      case 'on':
        return { call: 'on', event: random.pick(events), does: random.chance(0.75) ? this.#inner() : undefined, throws: random.chance(0.2) }
      case 'wrong':
        return { call: 'wrong', what: random.pick(wrongNames) }
      case 'stall':
        return { call: kind, milliseconds: random.pick([20, 300]) }
      case 'down':
        return { call: kind, milliseconds: random.pick([50, 400, 2000]) }
      default:
        return { call: kind }
    }
  }
}
