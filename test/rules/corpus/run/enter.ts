/**
 * Brings a client into a state of the corpus, whatever the transport: what the application does, what the server says, and what must be heard.
 *
 * Ends as soon as the client is there. Nothing that the application asked for is waited for after that: it may fail, as the case will have it.
 */
import type { ClientOptions } from '../../../../src/client/api/index.js'
import type { BaseClient } from '../../../../src/client/client.js'
import type { Bytes } from '../bytes.js'
import { ids } from '../case.js'
import { limits, type State } from '../states.js'
import { type Script, script } from './script.js'

/** The server's end of a connection. */
export interface Peer {
  say(bytes: Bytes): void
  /** The next word of the client. */
  hear(): Promise<string>
}

const noop = (): void => undefined
const failed = (promise: Promise<unknown>): void => void promise.catch(noop)

/** Options of the client for a state. */
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

/** Takes a new client there. */
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
