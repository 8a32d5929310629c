/** A case of the corpus: the bytes of one or more packets, and what each of them means, said by whoever put them together. */
import { type Bytes, hex, join } from './bytes.js'
import type { PacketName } from './facts.js'
import type { RuleName } from './rules.js'

/** What a packet, or a piece of one, is. `pairs` counts user properties, default 0. */
export type Meaning =
  /** Wrong whatever the state; nothing behind it counts. */
  | { readonly kind: 'broken'; readonly rule: RuleName }
  /** The beginning of a packet: more has to come. */
  | { readonly kind: 'partial' }
  | {
      readonly kind: 'connack'
      /** Reason code; on 3.1.1 the return code. */
      readonly code: number
      readonly present?: boolean
      readonly method?: string
      readonly assigned?: boolean
      readonly pairs?: number
      readonly limit?: number
    }
  | {
      readonly kind: 'publish'
      readonly qos: 0 | 1 | 2
      readonly id: number
      readonly dup?: boolean
      readonly alias?: number
      /** The topic is empty: the alias stands for it. */
      readonly nameless?: boolean
      readonly pairs?: number
      readonly identifiers?: number
    }
  | {
      readonly kind: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp'
      readonly id: number
      readonly code: number
      readonly pairs?: number
    }
  | {
      readonly kind: 'suback' | 'unsuback'
      readonly id: number
      readonly count: number
      readonly pairs?: number
      /** Every code says that the packet identifier is in use. */
      readonly inUse?: boolean
    }
  | { readonly kind: 'pingresp' }
  | { readonly kind: 'disconnect'; readonly code: number; readonly pairs?: number }
  | {
      readonly kind: 'auth'
      readonly code: number
      readonly method: string
      readonly pairs?: number
    }

export interface Step {
  readonly bytes: Bytes
  readonly meaning: Meaning
}

export const step = (bytes: Bytes, meaning: Meaning): Step => ({ bytes, meaning })
export const broken = (rule: RuleName, bytes: Bytes): Step => ({
  bytes,
  meaning: { kind: 'broken', rule },
})
export const partial = (bytes: Bytes): Step => ({ bytes, meaning: { kind: 'partial' } })

export interface Case {
  /** Version, packet type and what is special: unique. */
  readonly name: string
  readonly version: 4 | 5
  readonly type: PacketName
  /** What it has that no other case of this packet type has. */
  readonly special: string
  readonly meanings: readonly Meaning[]
  readonly bytes: Uint8Array
}

export class Book {
  readonly version: 4 | 5
  readonly cases: Case[] = []

  constructor(version: 4 | 5) {
    this.version = version
  }

  add(type: PacketName, special: string, ...steps: Step[]): void {
    const { version } = this
    const bytes = new Uint8Array(join(...steps.map((each) => each.bytes)))
    this.cases.push({
      name: `${version === 4 ? '3.1.1' : '5.0'} ${type}: ${special}`,
      version,
      type,
      special,
      meanings: steps.map((each) => each.meaning),
      bytes,
    })
  }

  /** The calls for one packet type; `all` and `allBad` take many at once, by what is special about them. */
  of(type: PacketName) {
    const add = (special: string, ...steps: Step[]): void => this.add(type, special, ...steps)
    const bad = (rule: RuleName, how: string, ...parts: Bytes[]): void =>
      this.addBroken(type, rule, how, ...parts)
    return {
      add,
      bad,
      all(cases: Readonly<Record<string, Step | readonly Step[]>>): void {
        for (const [special, steps] of Object.entries(cases)) add(special, ...[steps].flat())
      },
      allBad(rule: RuleName, cases: Readonly<Record<string, Bytes>>): void {
        for (const [how, bytes] of Object.entries(cases)) bad(rule, how, bytes)
      },
    }
  }

  /** A sequence that breaks this rule, and nothing before it. */
  addBroken(type: PacketName, rule: RuleName, how: string, ...parts: Bytes[]): void {
    this.add(type, how === '' ? rule : `${rule}: ${how}`, broken(rule, join(...parts)))
  }
}

/** A byte as `0x1f`. */
export const shown = (byte: number): string => `0x${hex([byte])}`

/** Packet identifiers, by what they are in the states that know them. */
export const ids = {
  /** Of the only PUBLISH in flight from us: QoS 1 in `busy`, QoS 2 in `sent` and `released`. */
  ours: 2,
  /** Of a SUBSCRIBE with two filters, in `busy`. */
  subscribing: 3,
  /** Of an UNSUBSCRIBE with two filters, in `busy`. */
  unsubscribing: 4,
  /** Of a QoS 1 message in hand, in `busy`. */
  theirs1: 7,
  /** Of a QoS 2 message: in hand in `busy`, and awaiting PUBREL in `received`. */
  theirs2: 8,
  /** Known in no state. */
  fresh: 300,
  /** Kept for the runners, who ask with a PUBREL of it whether the link is up. */
  probe: 0x7e57,
} as const

/** Name of the authentication method in the states that have one. */
export const method = 'corpus'
