/**
 * Calls of the hooks that allow or refuse. A hook that fails refuses.
 *
 * `hooks.ts` makes the calls; this file chooses hook and arguments and interprets the verdict. A
 * hook that is not set allows everything.
 */
import { CONNACK, PUBACK, SUBACK } from '../../../wire/constants.js'
import type {
  ConnectPacket,
  Properties,
  PublishPacket,
  SubscriptionRequest,
} from '../../../wire/packets.js'
import type { BrokerClient, HookName } from './events.js'
import { ask, codeOf, codeWithout, type Eventually, type HookHost, NoVerdict } from './hooks.js'
import type { BrokerMessage } from './message.js'
import type { BrokerSettings } from './options.js'

export interface VerdictHost extends HookHost {
  readonly settings: BrokerSettings
}

/** A verdict on a CONNECT. */
export interface ConnectVerdict {
  readonly code: number
  /** Properties of a refusing CONNACK. */
  readonly properties: Properties | undefined
}

/**
 * Whether the client may connect. The call has no time limit of its own, because `connectTimeout`
 * covers it.
 */
export function connectVerdict(
  host: VerdictHost,
  connect: ConnectPacket,
  remote: string | undefined,
): Eventually<ConnectVerdict> {
  const { authenticate } = host.settings
  if (authenticate === undefined) return { code: 0, properties: undefined }
  return ask<ConnectVerdict>(host, {
    hook: 'authenticate',
    clientId: connect.clientId,
    timeout: Infinity,
    run: () => authenticate(connect, { remote }),
    read: (verdict) => ({
      code: codeOf(verdict, CONNACK),
      properties:
        (typeof verdict === 'object' &&
          (verdict as { readonly properties?: Properties }).properties) ||
        undefined,
    }),
    failed: (error) => ({ code: codeWithout(error), properties: undefined }),
  })
}

/**
 * The code of a refused message, or one below 0x80. PUBREC has the codes of PUBACK [MQTT-3.4.2-1]
 * [MQTT-3.5.2-1].
 */
export function publishVerdict(
  host: VerdictHost,
  client: BrokerClient,
  packet: () => PublishPacket,
): Eventually<number> {
  const { authorizePublish } = host.settings
  if (authorizePublish === undefined) return 0
  return askForCode(host, 'authorizePublish', client, PUBACK, () =>
    authorizePublish(client, packet()),
  )
}

/** The code of a refused filter, or one below 0x80 [MQTT-3.9.3-2]. */
export function subscribeVerdict(
  host: VerdictHost,
  client: BrokerClient,
  request: SubscriptionRequest,
): Eventually<number> {
  const { authorizeSubscribe } = host.settings
  if (authorizeSubscribe === undefined) return 0
  return askForCode(host, 'authorizeSubscribe', client, SUBACK, () =>
    authorizeSubscribe(client, request),
  )
}

/** Whether the receiver may get the message. */
export function deliveryVerdict(
  host: VerdictHost,
  client: BrokerClient,
  message: BrokerMessage,
): Eventually<boolean> {
  const { authorizeDelivery, hookTimeout: timeout } = host.settings
  if (authorizeDelivery === undefined) return true
  return ask(host, {
    hook: 'authorizeDelivery',
    clientId: client.clientId,
    timeout,
    run: () => authorizeDelivery(client, message),
    read(verdict) {
      if (typeof verdict !== 'boolean' && verdict !== 'discard') throw new NoVerdict(verdict)
      return verdict === true
    },
    failed: () => false,
  })
}

function askForCode(
  host: VerdictHost,
  hook: HookName,
  { clientId }: BrokerClient,
  answer: number,
  run: () => unknown,
): Eventually<number> {
  const { hookTimeout: timeout } = host.settings
  return ask(host, {
    hook,
    clientId,
    timeout,
    run,
    read: (verdict) => codeOf(verdict, answer),
    failed: codeWithout,
  })
}
