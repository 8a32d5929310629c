/**
 * The handshake at 5.0 and at 3.1.1, and all that the broker announces in it.
 */
import {
  type Client,
  type ClientOptions,
  connect,
  type EndpointOptions,
  MqttError,
  type Negotiated,
  printable,
} from 'mqwire'
import type { Findings } from './finding.js'

/** Looks at both versions, or at the one that is asked for. Returns what 5.0, otherwise 3.1.1, negotiated; undefined without either. */
export async function lookAtHandshake(
  endpoint: EndpointOptions,
  options: ClientOptions,
  findings: Findings,
): Promise<Negotiated | undefined> {
  const { userProperties: _properties, ...plain } = options
  const five =
    options.protocolVersion === 4
      ? undefined
      : await handshake(endpoint, { ...options, protocolVersion: 5 }, 'MQTT 5.0', findings)
  if (five !== undefined) announced(five, findings)
  const four =
    options.protocolVersion === 5
      ? undefined
      : await handshake(endpoint, { ...plain, protocolVersion: 4 }, 'MQTT 3.1.1', findings)
  return five ?? four
}

async function handshake(
  endpoint: EndpointOptions,
  options: ClientOptions,
  check: string,
  findings: Findings,
): Promise<Negotiated | undefined> {
  const start = performance.now()
  try {
    const client = await connect(endpoint, { ...options, reconnect: false })
    const { negotiated } = client
    const time = (performance.now() - start).toFixed(0)
    await leave(client)
    findings.add(check, 'ok', `CONNACK after ${time} ms`)
    return negotiated
  } catch (error) {
    if (!MqttError.is(error)) throw error
    const refused = error.code === 'ERR_CONNECT_REFUSED'
    findings.isRefused ||= refused
    const isVersion = refused && (error.reasonCode === 0x84 || error.reasonCode === 1)
    const reason = error.reasonString === undefined ? '' : ` (${printable(error.reasonString)})`
    findings.add(
      check,
      isVersion ? 'not offered' : 'failed',
      `${error.message}${reason}`,
      isVersion
        ? `--protocol ${check === 'MQTT 5.0' ? 4 : 5}, in code protocolVersion`
        : refused
          ? 'credentials, client identifier, or what the broker allows'
          : undefined,
    )
    return undefined
  }
}

/** Ends a connection and its session. */
export async function leave(client: Client): Promise<void> {
  // On 3.1.1, the session of a client that starts clean ends by itself.
  const ending = client.negotiated?.protocolVersion === 5 && { sessionExpiryInterval: 0 }
  await client.disconnect({ timeout: 1000, ...ending }).catch(() => undefined)
}

const none = 'not offered'

/** A line for each limit and feature of CONNACK. */
function announced(negotiated: Negotiated, findings: Findings): void {
  const say = (check: string, seen: string, meaning?: string): void =>
    findings.add(check, 'ok', seen, meaning)
  const feature = (check: string, has: boolean, without: string): void =>
    findings.add(
      check,
      has ? 'ok' : none,
      has ? 'offered' : 'not offered',
      has ? undefined : without,
    )
  const { maximumQoS, receiveMaximum, maximumPacketSize, topicAliasMaximum } = negotiated
  if (maximumQoS === 2) say('Maximum QoS', '2')
  else
    findings.add(
      'Maximum QoS',
      none,
      String(maximumQoS),
      `QoS ${maximumQoS + 1} is not offered: publishing at it fails`,
    )
  say(
    'Receive Maximum',
    String(receiveMaximum),
    receiveMaximum < 20 ? 'so many publishes may be in flight: it limits the rate' : undefined,
  )
  say(
    'Maximum Packet Size',
    maximumPacketSize >= 268_435_455 ? 'no limit announced' : `${maximumPacketSize} bytes`,
    maximumPacketSize < 65_536 ? 'larger messages are refused before they are sent' : undefined,
  )
  feature('retained messages', negotiated.retainAvailable, 'publishing with retain fails')
  feature('wildcards', negotiated.wildcardSubscriptionAvailable, 'filters must name each topic')
  feature(
    'subscription identifiers',
    negotiated.subscriptionIdentifierAvailable,
    'messages of overlapping filters are assigned by their topics',
  )
  feature(
    'shared subscriptions',
    negotiated.sharedSubscriptionAvailable,
    '$share/… fails; consumers cannot share a load',
  )
  if (topicAliasMaximum > 0) say('topic aliases', `${topicAliasMaximum} accepted`)
  else findings.add('topic aliases', none, 'none accepted', 'topics are sent in full')
  if (negotiated.serverKeepAlive !== undefined)
    say(
      'Server Keep Alive',
      `${negotiated.serverKeepAlive} s`,
      'in place of what the client asks for',
    )
  say(
    'Session Expiry',
    negotiated.sessionExpiryInterval === 0xffff_ffff
      ? 'for ever'
      : `${negotiated.sessionExpiryInterval} s`,
  )
  if (negotiated.responseInformation !== undefined)
    say('Response Information', printable(negotiated.responseInformation))
  for (const [name, value] of negotiated.userProperties)
    say('user property', `${printable(name)}: ${printable(value)}`)
}
