/** Defines the tests of every feature on one broker, over each transport that it has. */
import { type TransportName, transports } from './brokers.js'
import { features } from './features.js'
import { identities } from './identities.js'
import type { BrokerName } from './matrix.js'
import { site } from './sites.js'
import { type Lacks, suite, withoutBroker } from './target.js'

/** The features that are run: all of them, those that may depend on the transport, or the essential ones. */
const reaches: Readonly<Record<TransportName, readonly string[]>> = {
  TCP: ['everywhere', 'most', 'TCP'],
  WebSocket: ['everywhere', 'most'],
  TLS: ['everywhere'],
  'Secure WebSocket': ['everywhere'],
  'Unix socket': ['everywhere'],
}

/**
 * `lacksOf` has what the broker does not do as the standard says, by the name of the feature. A broker that cannot be had is skipped, or fails where it
 * must be had.
 */
export async function runOn(
  broker: BrokerName,
  lacksOf: (transport: TransportName) => Lacks,
  {
    over = transports,
    required = false,
  }: { over?: readonly TransportName[]; required?: boolean } = {},
): Promise<void> {
  const found = await site(broker)
  if ('missing' in found) return withoutBroker(broker, found.missing, required)
  const { version, start, clientOptions = {} } = found
  const tls = { ca: identities().authority.cert }
  for (const transport of over) {
    const lacks = lacksOf(transport)
    const unknown = Object.keys(lacks).filter(
      (name) => !features.some((each) => each.name === name),
    )
    if (unknown.length > 0) throw new Error(`no feature is called '${unknown.join()}'`)
    const own = `over ${transport}`
    const run = features.filter(({ name, reach = 'most' }) =>
      name.startsWith('over ') || lacks[own] !== undefined
        ? name === own
        : reaches[transport].includes(reach),
    )
    suite({ broker, version, transport, start, tls, clientOptions, lacks }, run)
  }
}
