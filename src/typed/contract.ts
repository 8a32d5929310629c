/**
 * Contracts: channels and operations by name, in nested groups, bound to a client with one call.
 */
import type { Requester } from '../client/options/index.js'
import { printable } from '../errors.js'
import { type BoundChannel, Channel } from './channel.js'
import { type BoundOperation, Operation, type OperationClient } from './operation.js'
import { refuse } from './refuse.js'

/** A contract on a client. */
export type BoundContract<Parts, Client> = {
  readonly [Name in keyof Parts as Name extends 'on' ? never : Name]: Parts[Name] extends Channel<
    infer Template,
    infer In,
    infer Out,
    infer Usual
  >
    ? BoundChannel<Client, Template, In, Out, Usual>
    : Parts[Name] extends Operation<infer Template, infer In, infer Request, infer Reply, infer Out>
      ? Client extends OperationClient
        ? BoundOperation<Template, In, Request, Reply, Out>
        : Client extends Requester
          ? Pick<BoundOperation<Template, In, Request, Reply, Out>, 'call'>
          : object
      : BoundContract<Parts[Name], Client>
}

/** The given parts, and `on`, which binds all of them. */
export type Contract<Parts> = Omit<Parts, 'on'> & {
  /** Binds all parts to a client. */
  on<Client extends object>(client: Client): BoundContract<Parts, Client>
}

/** Anything that can be a part: a channel, an operation, or a contract. */
export interface Bindable {
  /** Binds the part to a client. */
  on(client: object): object
}

/** The parts. Anything that cannot be a part is replaced by a type that says what is required. */
export type CheckedParts<Parts> = {
  readonly [Name in keyof Parts]: Name extends 'on'
    ? Parts[Name]
    : Parts[Name] extends Bindable
      ? Parts[Name]
      : // Clients and other emitters also have an `on`, with an event and a listener.
        Parts[Name] extends ((...given: never[]) => unknown) | Readonly<Record<'on', unknown>>
        ? {
            /** This is not a valid part. */
            readonly 'A part is a channel, an operation, a contract, or a group of them by name.': true
          }
        : Parts[Name] extends object
          ? CheckedParts<Parts[Name]>
          : {
              /** This is not a valid part. */
              readonly 'A part is a channel, an operation, a contract, or a group of them by name.': true
            }
}

/**
 * Creates a contract of channels, operations, contracts, and groups of them by name. A contract may
 * be a part of another one, or be spread into it.
 * @throws MqttError ERR_INVALID_OPTION for a part that is not valid, or the name `on`
 */
export function contract<const Parts extends object>(
  parts: Parts & { readonly on?: Bindable['on'] } & CheckedParts<Parts>,
): Contract<Parts>
export function contract(parts: object): object {
  const own = Object.entries(parts).map(([name, part]): [string, object] => {
    if (typeof part !== 'object' || part === null)
      refuse(printable(name), 'is no channel, operation or contract')
    if (name === 'on') refuse(name, 'binds a contract and is no name')
    const bindable =
      part instanceof Channel ||
      part instanceof Operation ||
      typeof (part as Partial<Bindable>).on === 'function'
    return [name, bindable ? part : contract(part as never)]
  })
  const made = Object.fromEntries(own)
  const on = (client: object): object =>
    Object.fromEntries(own.map(([name, part]) => [name, (part as Bindable).on(client)]))
  return Object.defineProperty(made, 'on', { value: on })
}
