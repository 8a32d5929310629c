/**
 * `subscribeShared` and `listenShared`: consumers as members of a group (section 4.8.2), with lag
 * and draining for fleets of processes.
 *
 * They use the public side of a client, and `ClientAccess` for leaving. The caller's objects are
 * never changed.
 */

import { silent } from '../../common/abort.js'
import { asyncDisposeSymbol } from '../../common/dispose.js'
import {
  anyObject,
  assertHandler,
  callable,
  duration,
  invalid,
  object,
  optional,
  type Parser,
  signal,
  string,
  withDefault,
} from '../../common/schema.js'
import { parseShare } from '../../wire/topics.js'
import { access, type ClientAccess } from '../access.js'
import type {
  DrainOptions,
  Handler,
  Handling,
  Message,
  NextOptions,
  SharedConsumer,
  SharedHandling,
  SharedListenOptions,
  SharedSubscribeOptions,
  SharedSubscription,
  Subscription,
} from '../options/index.js'
import { GroupMembership, type LagCall, type SharingClient } from './group-membership.js'

/**
 * Defaults in milliseconds: the timeout of `drain()`, and the time without messages that ends it.
 */
const patience = 30_000
const usualQuiet = 250

const parseLag = /* @__PURE__ */ object<LagCall>({
  topic: string,
  read: /* @__PURE__ */ optional(callable as Parser<NonNullable<LagCall['read']>>),
})

const drainCall = /* @__PURE__ */ object<{ timeout: number; signal: AbortSignal | undefined }>({
  timeout: /* @__PURE__ */ withDefault(duration, patience),
  signal: /* @__PURE__ */ optional(signal),
})

/** A checked call. */
interface SharedCall {
  readonly client: SharingClient
  readonly behind: ClientAccess
  /** With `$share/`, as subscribed. */
  readonly filter: string
  readonly quiet: number
  readonly lag: LagCall | undefined
  /** The remaining options, which the client checks. */
  readonly options: object
}

function checkedCall(
  client: SharingClient,
  group: string,
  inner: string,
  given: object | undefined,
): SharedCall {
  const behind = (client as Partial<{ [access](): ClientAccess }> | undefined)?.[access]?.()
  if (behind?.subscriptions?.membership?.byFilter === undefined)
    invalid('client', 'a client of this copy of mqwire')
  const filter = `$share/${string(group, 'group')}/${string(inner, 'filter')}`
  if (inner === '' || parseShare(inner) !== undefined)
    invalid('filter', 'a topic filter without $share/ and a group')
  if (parseShare(filter)?.shareName !== group)
    invalid('group', 'a ShareName: some text without a slash')
  const { quiet, lag, ...options } = anyObject(given ?? {}, 'options') as {
    quiet?: unknown
    lag?: unknown
  }
  const checked = {
    quiet: withDefault(duration, usualQuiet)(quiet, 'quiet'),
    lag: optional(parseLag)(lag, 'lag'),
  }
  return { client, behind, filter, options, ...checked }
}

/**
 * Subscribes to a share and waits for the grant: each message of the filter goes to one member of
 * the group.
 * @throws MqttError as `client.subscribe`, for `lag.topic` too; ERR_INVALID_OPTION
 */
export async function subscribeShared(
  client: SharingClient,
  group: string,
  filter: string,
  options?: SharedSubscribeOptions,
): Promise<SharedSubscription> {
  const call = checkedCall(client, group, filter, options)
  const subscription = client.subscription(call.filter, call.options)
  const member = memberOf(call)
  // Loops call these two for each message.
  for (const name of ['next', 'read'] as const) {
    const ask = subscription[name] as (given?: NextOptions) => unknown
    const value = (given?: NextOptions): unknown => {
      if (member !== undefined) member.moves += 1
      return ask.call(subscription, given)
    }
    Object.defineProperty(subscription, name, { value, configurable: true })
  }
  return join(member, subscription.ready, () => subscription.detach())
}

/**
 * Subscribes to a share and calls a handler with each message, `concurrency` at a time; a message
 * is acknowledged when its handler is done.
 * @throws MqttError as `client.listen`, for `lag.topic` too; ERR_INVALID_OPTION
 */
export async function listenShared(
  client: SharingClient,
  group: string,
  filter: string,
  handler: Handler,
  options?: SharedListenOptions,
): Promise<SharedHandling> {
  const call = checkedCall(client, group, filter, options)
  assertHandler(handler, 'handler')
  let member: GroupMembership | undefined
  const counted = (message: Message): unknown => {
    if (member !== undefined) member.moves += 1
    return handler(message)
  }
  const granted = client.listen(call.filter, counted, call.options)
  member = memberOf(call)
  return join(member, granted, () => undefined)
}

/** The member for the consumer that this call just created; undefined when the call has failed. */
function memberOf({ client, behind, filter, quiet, lag }: SharedCall): GroupMembership | undefined {
  const { platform, subscriptions, session, connections } = behind as Required<ClientAccess>
  const book = subscriptions.membership
  const share = book.byFilter.get(filter)
  // The newest consumer.
  const reader = share && [...share.takers.keys()].at(-1)
  return (
    reader &&
    new GroupMembership(
      { client, filter, book, share, reader, quiet, behind: { platform, session, connections } },
      lag,
    )
  )
}

/** Returns the handle once it is granted and its lag topic is subscribed. `disown` ends reading. */
async function join<H extends Subscription | Handling>(
  member: GroupMembership | undefined,
  granted: Promise<H>,
  disown: () => void,
): Promise<H & SharedConsumer> {
  silent(granted)
  let handle: H
  try {
    handle = await granted
  } catch (error) {
    member?.hush()
    throw error
  }
  // After the grant there is a member.
  const here = member as GroupMembership
  here.end = handle.unsubscribe.bind(handle)
  const dispose = async (): Promise<void> => {
    disown()
    const drained = silent(here.drain(patience, undefined))
    // Disposal does not wait for a connection.
    if (here.connected) await drained
  }
  try {
    await here.listening
  } catch (error) {
    await dispose()
    throw error
  }
  const drain = async (given?: DrainOptions): Promise<void> => {
    const { timeout, signal: abort } = drainCall(given ?? {}, 'options')
    await here.drain(timeout, abort)
  }
  return Object.defineProperties(handle, {
    lag: { value: () => here.lag() },
    unsubscribe: { value: () => here.unsubscribe() },
    drain: { value: drain },
    [asyncDisposeSymbol]: { value: dispose },
  }) as H & SharedConsumer
}
