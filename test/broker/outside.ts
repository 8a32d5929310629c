/**
 * The broker on real listeners, for programs that were not written with it: MQTT.js and mosquitto's clients.
 */
import {
  type BrokerEvents,
  MemoryBroker,
  type MemoryBrokerOptions,
} from '../../src/testing/index.js'
import { listenTcp } from '../../src/transport/tcp.js'
import type { Listener } from '../../src/transport/transport.js'
import { listenWebSocket } from '../../src/transport/websocket-node.js'

/** A broker that listens. */
export interface OutsideBroker {
  readonly broker: MemoryBroker
  readonly urls: Readonly<Record<'TCP' | 'WebSocket', string>>
  readonly port: number
  stop(): Promise<void>
}

/** Starts a broker on free ports. */
export async function listen(options: MemoryBrokerOptions = {}): Promise<OutsideBroker> {
  const broker = new MemoryBroker(options)
  const listeners: Listener[] = [
    await listenTcp({}, broker.accept),
    await listenWebSocket({}, broker.accept),
  ]
  const [TCP = '', WebSocket = ''] = listeners.map(({ url }) => url)
  return {
    broker,
    urls: { TCP, WebSocket },
    port: Number(new URL(TCP).port),
    async stop() {
      broker.close()
      for (const listener of listeners) await listener.close()
    },
  }
}

/** The next event of a kind that the test is true for. */
export function next<K extends keyof BrokerEvents>(
  broker: MemoryBroker,
  type: K,
  test: (event: BrokerEvents[K]) => boolean = () => true,
): Promise<BrokerEvents[K]> {
  return new Promise((resolve) => {
    const stop = broker.on(type, (event) => {
      if (!test(event)) return
      stop()
      resolve(event)
    })
  })
}
