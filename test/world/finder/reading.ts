/**
 * Subscriptions of a program, and how their messages are read: loops that are left half-way, `next()`, batches, handlers that call back.
 *
 * Each message goes into the history with what is wrong with it. A reader must end with its client: one that does not is told at the end.
 */
import type { BaseClient } from '../../../src/client/client.js'
import type { ListenOptions, Message, SubscribeOptions, Subscription } from '../../../src/client/public.js'
import { MqttError } from '../../../src/errors.js'
import { prefixed } from './calls.js'
import type { CallRecord } from './history.js'
import { nameIn, wrongIn } from './naming.js'
import { frozen, type Performer } from './perform.js'
import type { Call, Reading } from './program.js'

type Subscribing = Extract<Call, { readonly call: 'subscribe' }>

/** Makes a subscription and reads it as its plan says. */
export function subscribe(performer: Performer, client: BaseClient, record: CallRecord, call: Subscribing): Promise<unknown> {
  const filters = frozen(call.filters.map((filter) => prefixed(performer, filter)))
  const signal = performer.signal(call.signal)
  const until = performer.signal(call.until)
  const options = { ...call.options, ...(signal === undefined ? {} : { signal }), ...(until === undefined ? {} : { until }) }
  if (call.through === 'listen') return listening(performer, client, record, call, filters, frozen(options) as ListenOptions)
  const all = frozen({ ...options, ...(call.reading.acks === true ? { ack: 'manual' } : {}) }) as SubscribeOptions
  if (call.through === 'subscription') {
    const subscription = client.subscription(filters, all)
    void read(performer, record, subscription, call.reading)
    return subscription.ready.then(granted)
  }
  return client.subscribe(filters, all).then((subscription) => {
    void read(performer, record, subscription, call.reading)
    return granted(subscription)
  })
}

function granted(subscription: { readonly granted: readonly { readonly qos: number | undefined }[] }): unknown {
  return subscription.granted.map(({ qos }) => qos)
}

async function listening(
  performer: Performer,
  client: BaseClient,
  record: CallRecord,
  { inside, reading: { hold = 0 } }: Subscribing,
  filters: readonly string[],
  options: ListenOptions,
): Promise<unknown> {
  const handler = async (message: Message): Promise<void> => {
    note(performer, record, message)
    if (inside !== undefined) performer.perform(inside, { id: record.id, client: record.client, nested: true })
    if (hold > 0) await performer.sleep(hold)
  }
  const handling = await client.listen(filters, handler, options)
  performer.subscriptions.set(record.id, handling)
  const done = performer.waiting(`listen of step ${record.id}`)
  const end = (how: string): void => {
    performer.history.end(record.id, performer.place.now(), how)
    done()
  }
  handling.done.then(
    () => end('done'),
    (error: unknown) => {
      typed(performer, record, error)
      end('failed')
    },
  )
  return granted(handling)
}

async function read(performer: Performer, record: CallRecord, subscription: Subscription, reading: Reading): Promise<void> {
  performer.subscriptions.set(record.id, subscription)
  if (reading.how === 'none') return
  const done = performer.waiting(`the reader of step ${record.id}`)
  let how = 'end'
  try {
    how = await reads(performer, record, subscription, reading)
  } catch (error) {
    typed(performer, record, error)
    how = 'failed'
  }
  performer.history.end(record.id, performer.place.now(), how)
  done()
}

function typed(performer: Performer, record: CallRecord, error: unknown): void {
  if (!MqttError.is(error)) performer.history.report('kinds', `the reader of step ${record.id} ended with ${String(error)}`)
}

/** Gives how it ended. */
async function reads(performer: Performer, record: CallRecord, subscription: Subscription, reading: Reading): Promise<string> {
  const { how, most = Number.POSITIVE_INFINITY, hold = 0, acks } = reading
  let count = 0
  const take = async (message: Message): Promise<boolean> => {
    if (how !== 'batches') note(performer, record, message)
    if (hold > 0) await performer.sleep(hold)
    if (acks === true) message.ack()
    count += 1
    return count >= most
  }
  if (how === 'next') {
    for (let message = await subscription.next(); message !== undefined; message = await subscription.next()) if (await take(message)) return 'kept'
    return 'end'
  }
  if (how === 'batches') {
    for await (const batch of subscription.batches(3)) {
      // They were all given at once.
      for (const message of batch) note(performer, record, message)
      for (const message of batch) if (await take(message)) return 'break'
    }
    return 'end'
  }
  for await (const message of subscription) if (await take(message)) return 'break'
  return 'end'
}

function note(performer: Performer, record: CallRecord, message: Message): void {
  const { history, place, program } = performer
  const { topic, payload, qos, retain, redelivered } = message
  const name = nameIn(topic, payload)
  history.deliveries.push({
    id: record.id,
    client: record.client,
    at: place.now(),
    seq: history.next(),
    topic: topic.slice(place.prefix.length),
    name,
    wrong: wrongIn(program, name, payload),
    qos,
    retain,
    redelivered,
  })
}
