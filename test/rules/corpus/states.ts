/** The states of a session in which every case is run: what the client was started with, and what is known and under way on both sides. */
import { ids, method } from './case.js'

export const limits = {
  receiveMaximum: 4,
  topicAliasMaximum: 3,
  maximumPacketSize: 120_000,
} as const

/** Most user properties, and Subscription Identifiers, of a packet, and rounds of an authentication. */
export const counts = { pairs: 128, identifiers: 64, rounds: 16 } as const

export type StateName =
  | 'connecting'
  | 'resuming'
  | 'authenticating'
  | 'idle'
  | 'busy'
  | 'received'
  | 'sent'
  | 'released'
  | 'reauthenticating'
  | 'disconnecting'

/** What an identifier of ours waits for; of a SUBSCRIBE or UNSUBSCRIBE also its number of filters. */
export type Awaiting =
  | 'puback'
  | 'pubrec'
  | 'pubcomp'
  | { readonly answer: 'suback' | 'unsuback'; readonly filters: number }

/** An incoming message: in the application's hands (at QoS 1 or 2), or received and waiting for PUBREL. */
export type Taken = 'in hand at QoS 1' | 'in hand at QoS 2' | 'awaiting PUBREL'

export interface State {
  readonly name: StateName
  readonly title: string
  readonly versions: readonly (4 | 5)[]
  /** CONNACK has still to come. */
  readonly handshake: boolean
  /** Empty: the server may assign one. */
  readonly clientId: string
  /** False declares a session, which the server may resume. */
  readonly cleanStart: boolean
  readonly method: string | undefined
  /** AUTH packets of the exchange that is under way; undefined when none is. */
  readonly rounds: number | undefined
  /** The application settles each message as it arrives, or none at all. */
  readonly settles: boolean
  readonly ours: Readonly<Record<number, Awaiting>>
  readonly theirs: Readonly<Record<number, Taken>>
  readonly aliases: readonly number[]
  readonly leaving: boolean
}

const plain: Omit<State, 'name' | 'title'> = {
  versions: [5, 4],
  handshake: false,
  clientId: 'corpus',
  cleanStart: true,
  method: undefined,
  rounds: undefined,
  settles: true,
  ours: {},
  theirs: {},
  aliases: [],
  leaving: false,
}

export const states: readonly State[] = [
  {
    ...plain,
    name: 'connecting',
    title: 'CONNECT is out, without a client identifier',
    handshake: true,
    clientId: '',
  },
  {
    ...plain,
    name: 'resuming',
    title: 'CONNECT is out, for a session that may exist; nobody subscribed',
    handshake: true,
    cleanStart: false,
  },
  {
    ...plain,
    name: 'authenticating',
    title: 'CONNECT with a method, one AUTH each way',
    versions: [5],
    handshake: true,
    method,
    rounds: 1,
  },
  { ...plain, name: 'idle', title: 'one subscription, nothing in flight' },
  {
    ...plain,
    name: 'busy',
    title:
      'PUBLISH at QoS 1, SUBSCRIBE and UNSUBSCRIBE in flight; two messages, at QoS 1 and 2, in the hands of the application, which keeps them',
    settles: false,
    ours: {
      [ids.ours]: 'puback',
      [ids.subscribing]: { answer: 'suback', filters: 2 },
      [ids.unsubscribing]: { answer: 'unsuback', filters: 2 },
    },
    theirs: { [ids.theirs1]: 'in hand at QoS 1', [ids.theirs2]: 'in hand at QoS 2' },
    aliases: [2],
  },
  {
    ...plain,
    name: 'received',
    title: 'PUBREC is out, PUBREL is awaited',
    theirs: { [ids.theirs2]: 'awaiting PUBREL' },
  },
  {
    ...plain,
    name: 'sent',
    title: 'PUBLISH at QoS 2 is out, PUBREC is awaited',
    ours: { [ids.ours]: 'pubrec' },
  },
  {
    ...plain,
    name: 'released',
    title: 'PUBREL is out, PUBCOMP is awaited',
    ours: { [ids.ours]: 'pubcomp' },
  },
  {
    ...plain,
    name: 'reauthenticating',
    title: 'connected with a method, AUTH 0x19 is out',
    versions: [5],
    method,
    rounds: 0,
  },
  {
    ...plain,
    name: 'disconnecting',
    title: 'DISCONNECT is out, the stream is still open',
    leaving: true,
  },
]

/** The states that a version has: 3.1.1 knows no AUTH. */
export const statesOf = (version: 4 | 5): readonly State[] =>
  states.filter((state) => state.versions.includes(version))
