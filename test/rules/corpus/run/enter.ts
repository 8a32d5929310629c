/** Brings a client into a state of the corpus, whatever the transport: what the application does, what the server says, and what must be heard. */
import type { BaseClient } from '../../../../src/client/client.js'
import type { ClientOptions } from '../../../../src/client/options/index.js'
import { readPacket, type Seen, Splitter } from '../../../world/reader.js'
import { type Bytes, block, frame, join, string, u16 } from '../bytes.js'
import { ids } from '../case.js'
import { aliasProperty, dataProperty, methodProperty } from '../packets.js'
import { limits, type State } from '../states.js'

export class Hearing {
  readonly #splitter = new Splitter()
  #version = 5

  push(bytes: Uint8Array): string[] {
    return this.#splitter.push(bytes).flatMap((packet) => {
      // The level stands behind the length and the name.
      if (packet[0] === 0x10)
        this.#version = packet[packet.findIndex((byte, at) => at > 0 && byte < 128) + 7] ?? 5
      const seen = readPacket(packet, this.#version)
      return seen.kind === 'pingreq' ? [] : [wordFor(seen)]
    })
  }
}

function wordFor({ kind, id, qos, reason }: Seen): string {
  const code = reason.toString(16).padStart(2, '0')
  if (kind === 'publish') return qos === 0 ? kind : `${kind} ${id}`
  if (kind.startsWith('pub')) return `${kind} ${id} ${code}`
  if (kind.endsWith('subscribe')) return `${kind} ${id}`
  return kind === 'auth' || kind === 'disconnect' ? `${kind} ${code}` : kind
}

export interface Peer {
  say(bytes: Bytes): void
  hear(): Promise<string>
}

const noop = (): void => undefined
const failed = (promise: Promise<unknown>): void => void promise.catch(noop)

export function optionsFor(version: 4 | 5, { clientId, cleanStart, method }: State): ClientOptions {
  return {
    protocolVersion: version,
    clientId,
    cleanStart,
    ...(version === 5
      ? { ...limits, receiveMaximumExceeded: 'disconnect' }
      : { maximumPacketSize: limits.maximumPacketSize }),
    oversized: 'disconnect',
    keepAlive: false,
    reconnect: false,
    stats: true,
    // `success` makes CONNACK wait for the mechanism, and everything behind it.
    ...(method !== undefined && {
      auth: {
        method,
        start: () => 'begin',
        continue: () => 'go on',
        success: async () => undefined,
      },
    }),
  }
}

async function hear(peer: Peer, word: string): Promise<void> {
  const heard = await peer.hear()
  if (heard !== word) throw new Error(`heard '${heard}' instead of '${word}'`)
}

export async function enter(
  client: BaseClient,
  peer: Peer,
  version: 4 | 5,
  state: State,
): Promise<void> {
  const lines = script(version, state.method !== undefined)
  const connecting = client.connect()
  failed(connecting)
  await hear(peer, 'connect')
  if (state.handshake) {
    if (state.method === undefined) return
    peer.say(lines.challenge)
    return hear(peer, 'auth 18')
  }
  peer.say(lines.connack)
  await connecting
  const subscribing = client.subscribe('#', {
    qos: 2,
    ack: state.settles ? 'on-receive' : 'manual',
  })
  failed(subscribing)
  await hear(peer, 'subscribe 1')
  peer.say(lines.granted)
  await subscribing
  await goOn(client, peer, state, lines)
}

async function goOn(client: BaseClient, peer: Peer, { name }: State, lines: Script): Promise<void> {
  if (name === 'busy') {
    failed(client.publish('out', 'x', { qos: 1 }))
    await hear(peer, `publish ${ids.ours}`)
    failed(client.subscribe(['in/1', 'in/2'], { qos: 2 }))
    await hear(peer, `subscribe ${ids.subscribing}`)
    failed(client.unsubscribe(['never/1', 'never/2']))
    await hear(peer, `unsubscribe ${ids.unsubscribing}`)
    peer.say(lines.messages)
  } else if (name === 'received') {
    peer.say(lines.message)
    await hear(peer, `pubrec ${ids.theirs2} 00`)
  } else if (name === 'sent' || name === 'released') {
    failed(client.publish('out', 'x', { qos: 2 }))
    await hear(peer, `publish ${ids.ours}`)
    if (name === 'sent') return
    peer.say(lines.pubrec)
    await hear(peer, `pubrel ${ids.ours} 00`)
  } else if (name === 'reauthenticating') {
    failed(client.reauthenticate())
    await hear(peer, 'auth 19')
  } else if (name === 'disconnecting') {
    failed(client.disconnect())
    await hear(peer, 'disconnect 00')
  }
}

/** What the server says to bring a client into the states. */
interface Script {
  readonly challenge: Bytes
  readonly connack: Bytes
  /** SUBACK of the first subscription. */
  readonly granted: Bytes
  /** One at QoS 1, which sets an alias on 5.0, and one at QoS 2. */
  readonly messages: Bytes
  readonly message: Bytes
  readonly pubrec: Bytes
  /** Answered with PUBCOMP by whoever is still there. */
  readonly probe: Bytes
}

function make(version: 4 | 5, withMethod: boolean): Script {
  const five = version === 5
  const properties = (...list: Bytes[]): Bytes => (five ? block(...list) : [])
  const first = frame(0x32, string('known'), u16(ids.theirs1), properties(aliasProperty(2)))
  const message = frame(0x34, string('kept'), u16(ids.theirs2), properties())
  return {
    challenge: frame(0xf0, [0x18], block(methodProperty(), dataProperty(1))),
    connack: frame(0x20, [0, 0], properties(...(withMethod ? [methodProperty()] : []))),
    granted: frame(0x90, u16(1), properties(), [2]),
    messages: join(first, message),
    message,
    pubrec: frame(0x50, u16(ids.ours)),
    probe: frame(0x62, u16(ids.probe)),
  }
}

const made = new Map<string, Script>()

/** The script for a version, with or without an authentication method. */
export function script(version: 4 | 5, withMethod: boolean): Script {
  const key = `${version} ${withMethod}`
  const known = made.get(key) ?? make(version, withMethod)
  made.set(key, known)
  return known
}
