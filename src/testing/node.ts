/**
 * `mqwire/testing` in Node: adds a `MemoryBroker` that can listen.
 *
 * It may use the sockets of Node. Everything else is the same as in browsers, and no other file of
 * this folder may import a Node transport.
 */
import { MqttError } from '../errors.js'
import { checkNames } from '../transport/names.js'
import { listenTcp } from '../transport/tcp.js'
import type { Listener } from '../transport/transport.js'
import { listenUnix } from '../transport/unix.js'
import { listenWebSocket } from '../transport/websocket-node.js'
import {
  type BrokerListener,
  type BrokerListeners,
  type BrokerServeOptions,
  type BrokerTcpOptions,
  type BrokerWebSocketOptions,
  insideOf,
  MemoryBroker as PortableBroker,
} from './broker/broker.js'
import { checkInteger, checkType } from './broker/common/check.js'

export * from './index.js'

/** Milliseconds that clients have to read the DISCONNECT of a closing broker. */
const patience = 500

/** See {@link PortableBroker}. */
export class MemoryBroker extends PortableBroker {
  readonly #served = new Set<BrokerListeners>()

  override async serve(options: BrokerServeOptions): Promise<BrokerListeners> {
    const inside = insideOf(this)
    const plan = planOf(options, inside.settings.maximumPacketSize)
    if (inside.closed) throw closed()
    const opened = await Promise.allSettled(plan.map(({ listen }) => listen(this.accept)))
    const listeners = opened.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    )
    const failed = opened.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined || inside.closed) {
      await closeAll(listeners)
      throw failed === undefined ? closed() : failed.reason
    }
    return this.#keep(new Map(plan.map(({ name }, index) => [name, listeners[index] as Listener])))
  }

  override async close(): Promise<void> {
    void super.close()
    if (this.#served.size === 0) return
    // New clients are refused meanwhile; clients that have not closed their stream by then are cut.
    await Promise.race([
      insideOf(this).idle(),
      new Promise((resolve) => setTimeout(resolve, patience)),
    ])
    await Promise.all([...this.#served].map((served) => served.close()))
  }

  #keep(listeners: ReadonlyMap<Name, Listener>): BrokerListeners {
    const close = async (): Promise<void> => {
      this.#served.delete(served)
      await closeAll([...listeners.values()])
    }
    const served: BrokerListeners = {
      tcp: viewOf(listeners.get('tcp')),
      ws: viewOf(listeners.get('ws')),
      unix: viewOf(listeners.get('unix')),
      urls: [...listeners.values()].map(({ url }) => url),
      close,
      [Symbol.asyncDispose]: close,
    }
    this.#served.add(served)
    return served
  }
}

type Name = 'tcp' | 'ws' | 'unix'

interface Planned {
  readonly name: Name
  readonly listen: (accept: PortableBroker['accept']) => Promise<Listener>
}

/** The listeners to open, all checked before any is opened. */
function planOf(options: BrokerServeOptions, maximumPacketSize: number): Planned[] {
  checkNames('serve', options, ['tcp', 'ws', 'unix', 'host', 'tls'])
  const { tcp, ws, unix, host, tls } = options
  if (host !== undefined) checkType('host', host, 'string')
  const plan: Planned[] = []
  if (tcp !== undefined) {
    const settings = { host, tls, ...settingsOf('tcp', tcp, ['port', 'host', 'tls']) }
    plan.push({ name: 'tcp', listen: (accept) => listenTcp(settings, accept) })
  }
  if (ws !== undefined) {
    const settings = {
      host,
      tls,
      ...settingsOf('ws', ws, ['port', 'host', 'tls', 'path']),
      maximumPacketSize,
    }
    plan.push({ name: 'ws', listen: (accept) => listenWebSocket(settings, accept) })
  }
  if (unix !== undefined) {
    checkType('unix', unix, 'string')
    plan.push({ name: 'unix', listen: (accept) => listenUnix({ path: unix }, accept) })
  }
  if (plan.length === 0)
    throw new MqttError('ERR_INVALID_OPTION', 'serve needs tcp, ws or unix', { option: 'serve' })
  return plan
}

function settingsOf(
  what: string,
  given: number | BrokerTcpOptions | BrokerWebSocketOptions,
  names: readonly string[],
): BrokerWebSocketOptions {
  const settings = typeof given === 'number' ? { port: given } : given
  checkNames(what, settings, names)
  const { port, ...texts } = settings
  if (port !== undefined) checkInteger(`${what}.port`, port, 0, 65_535)
  for (const [name, value] of Object.entries(texts))
    if (name !== 'tls' && value !== undefined) checkType(`${what}.${name}`, value, 'string')
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

function viewOf(listener: Listener | undefined): BrokerListener | undefined {
  if (listener === undefined) return undefined
  const { url } = listener
  const { port } = new URL(url)
  const standard = url.startsWith('wss:') ? 443 : url.startsWith('ws:') ? 80 : undefined
  return { url, port: port === '' ? standard : Number(port) }
}

async function closeAll(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close()))
}

function closed(): MqttError {
  return new MqttError('ERR_CLOSED', 'the broker was closed')
}
