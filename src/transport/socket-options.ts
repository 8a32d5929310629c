/**
 * Address and socket settings of a target, in the terms of Node's `net` and `tls`. Not an entry
 * file, because its types are Node's. It reads nothing but the target.
 */

import type { LookupFunction } from 'node:net'
import { highWaterMark, hostOf } from './socket.js'
import type { SocketOptions, Target } from './transport.js'

const defaultPorts: Readonly<Record<string, number>> = {
  'ws:': 80,
  'wss:': 443,
  'mqtts:': 8883,
  'ssl:': 8883,
  'tls:': 8883,
}

/**
 * Port of a target: the URL's, otherwise 80 for `ws`, 443 for `wss`, 8883 for `mqtts`, `ssl` and
 * `tls`, 1883 for others.
 */
export function portOf(url: URL): number {
  return url.port === '' ? (defaultPorts[url.protocol] ?? 1883) : Number(url.port)
}

/** Options of `net.connect` and `tls.connect` for a target: address and socket settings. */
export function socketOptionsOf(target: Target) {
  return {
    host: hostOf(target.url),
    port: portOf(target.url),
    highWaterMark,
    ...settingsOf(target.socket),
  }
}

/** Socket settings in Node's terms, without those that were not set. */
export function settingsOf({ noDelay = true, family, lookup, localAddress }: SocketOptions) {
  return {
    noDelay,
    ...(family && { family }),
    ...(lookup && { lookup: lookup as LookupFunction }),
    ...(localAddress !== undefined && { localAddress }),
  }
}
