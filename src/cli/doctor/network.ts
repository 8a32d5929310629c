/**
 * The layers below MQTT, one after the other: the name, the port, the certificate, and the upgrade
 * to a WebSocket.
 */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  type DetailedPeerCertificate,
  type TLSSocket,
} from 'node:tls'
import { type EndpointOptions, printable } from 'mqwire'
import type { Findings } from './finding.js'

const ports: Readonly<Record<string, number>> = {
  mqtt: 1883,
  tcp: 1883,
  mqtts: 8883,
  ssl: 8883,
  tls: 8883,
  ws: 80,
  wss: 443,
}
const secure = ['mqtts', 'ssl', 'tls', 'wss']

/** Certificates that end within so many days are named. */
const fewDays = 21
const day = 86_400_000

/** Looks at each layer, until one fails. Returns false then. */
export async function lookAtNetwork(
  endpoint: EndpointOptions,
  findings: Findings,
  timeout: number,
): Promise<boolean> {
  const url = new URL(endpoint.url)
  const scheme = url.protocol.slice(0, -1)
  if (scheme === 'unix') return true
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? (ports[scheme] as number) : Number(url.port)
  if (!(await lookAtName(host, findings))) return false
  if (!(await lookAtPort(host, port, findings, timeout))) return false
  if (secure.includes(scheme) && !(await lookAtTls(host, port, endpoint, findings, timeout)))
    return false
  return !scheme.startsWith('ws') || lookAtUpgrade(url, endpoint, findings, timeout)
}

async function lookAtName(host: string, findings: Findings): Promise<boolean> {
  if (isIP(host) !== 0) return true
  const start = performance.now()
  try {
    const addresses = await lookup(host, { all: true })
    const shown = addresses.map(({ address }) => address).join(', ')
    findings.add('name', 'ok', `${host} is ${shown} (${since(start)})`)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    findings.add(
      'name',
      'failed',
      `${host}: ${code}`,
      code === 'EAI_AGAIN'
        ? 'no name server answers'
        : 'the name does not exist, or not in this network',
    )
    return false
  }
}

async function lookAtPort(
  host: string,
  port: number,
  findings: Findings,
  timeout: number,
): Promise<boolean> {
  const start = performance.now()
  const socket = connectTcp({ host, port })
  try {
    await opened(socket, 'connect', timeout)
    findings.add('port', 'ok', `${host}:${port} answers (${since(start)})`)
    return true
  } catch (error) {
    const code = codeOf(error)
    findings.add('port', 'failed', `${host}:${port}: ${code}`, meaningOf(code))
    return false
  } finally {
    socket.destroy()
  }
}

function meaningOf(code: string): string {
  if (code === 'ECONNREFUSED') return 'the machine is there, but nothing listens on this port'
  return code === 'ETIMEDOUT'
    ? 'no answer: a firewall drops it, or the machine is off'
    : 'the port cannot be reached'
}

/** Resolves at the event. Rejects with the socket's error, or ETIMEDOUT. */
async function opened(socket: Socket, event: string, timeout: number): Promise<void> {
  const timer = setTimeout(
    () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
    timeout,
  )
  try {
    await Promise.race([
      once(socket, event),
      once(socket, 'close').then(() => Promise.reject(new Error('it hung up'))),
    ])
  } finally {
    clearTimeout(timer)
  }
}

async function lookAtTls(
  host: string,
  port: number,
  { tls = {} }: EndpointOptions,
  findings: Findings,
  timeout: number,
): Promise<boolean> {
  const name = tls.servername ?? host
  const shown = (given: object): TLSSocket =>
    connectTls({
      host,
      port,
      ...(isIP(name) === 0 && { servername: name }),
      ...(tls.cert !== undefined && { cert: tls.cert as never, key: tls.key as never }),
      ...given,
      rejectUnauthorized: false,
    })
  const start = performance.now()
  const socket = shown(tls.ca === undefined ? {} : { ca: tls.ca as never })
  try {
    await opened(socket, 'secureConnect', timeout)
  } catch (error) {
    findings.add(
      'TLS',
      'failed',
      codeOf(error),
      'the port does not speak TLS, or refuses this client: another scheme, or --cert and --key?',
    )
    return false
  }
  const certificate = socket.getPeerCertificate(true)
  findings.add(
    'TLS',
    'ok',
    `${socket.getProtocol()}, ${socket.getCipher().standardName ?? socket.getCipher().name} (${since(start)})`,
  )
  const wrongName = checkServerIdentity(name, certificate)
  findings.add(
    'certificate name',
    wrongName === undefined ? 'ok' : 'failed',
    namesIn(certificate),
    wrongName === undefined
      ? undefined
      : `none of them is ${name}: dial one of them, or give --servername`,
  )
  const authority = String(socket.authorizationError ?? '')
  const isTrusted = socket.authorized || authority === 'ERR_TLS_CERT_ALTNAME_INVALID'
  findings.add(
    'certificate chain',
    isTrusted ? 'ok' : 'failed',
    chainOf(certificate),
    isTrusted ? undefined : wayToTrust(authority),
  )
  const isCurrent = lookAtExpiry(certificate, findings)
  socket.destroy()
  const isPublic = tls.ca === undefined ? isTrusted : await isTrustedWithout(shown, timeout)
  lookAtBrowsers({ certificate, isPublic, hasName: wrongName === undefined, isCurrent }, findings)
  return tls.insecure !== undefined || (isTrusted && wrongName === undefined && isCurrent)
}

/** True when the platform's authorities are enough. */
async function isTrustedWithout(
  dial: (given: object) => TLSSocket,
  timeout: number,
): Promise<boolean> {
  const socket = dial({})
  try {
    await opened(socket, 'secureConnect', timeout)
    return socket.authorized || String(socket.authorizationError) === 'ERR_TLS_CERT_ALTNAME_INVALID'
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function namesIn({ subjectaltname, subject }: DetailedPeerCertificate): string {
  return subjectaltname === undefined
    ? `no alternative name; common name ${printable(String(subject.CN))}`
    : printable(subjectaltname)
}

function chainOf(certificate: DetailedPeerCertificate): string {
  const names: string[] = []
  const seen = new Set<string>()
  for (
    let each: DetailedPeerCertificate | undefined = certificate;
    each !== undefined && !seen.has(each.fingerprint256);
    each = each.issuerCertificate
  ) {
    seen.add(each.fingerprint256)
    names.push(printable(String(each.subject.CN ?? each.subject.O ?? '(no name)')))
  }
  return names.join(' ← ')
}

function wayToTrust(code: string): string {
  const ways: Readonly<Record<string, string>> = {
    DEPTH_ZERO_SELF_SIGNED_CERT: 'it signs itself: --ca with this certificate trusts it',
    SELF_SIGNED_CERT_IN_CHAIN: 'a private authority: --ca with its certificate trusts it',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      'an authority is missing: the server must send its intermediate certificates, or --ca adds one',
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'an unknown authority: --ca with its certificate trusts it',
    CERT_HAS_EXPIRED: 'a certificate has expired',
  }
  return `${ways[code] ?? 'the chain is not trusted'} (${code})`
}

function lookAtExpiry(
  { valid_from, valid_to }: DetailedPeerCertificate,
  findings: Findings,
): boolean {
  const left = Math.floor((Date.parse(valid_to) - Date.now()) / day)
  const isBegun = Date.parse(valid_from) <= Date.now()
  const isCurrent = isBegun && left >= 0
  const meaning = !isBegun
    ? 'it is not valid yet: is the clock right?'
    : left < 0
      ? 'it has expired: renew it'
      : left < fewDays
        ? 'renew it soon'
        : undefined
  const verdict = isCurrent ? (left < fewDays ? 'note' : 'ok') : 'failed'
  findings.add(
    'certificate expiry',
    verdict,
    `${new Date(valid_to).toISOString().slice(0, 10)}, ${left < 0 ? `${-left} days ago` : `${left} days left`}`,
    meaning,
  )
  return isCurrent
}

function lookAtBrowsers(
  {
    certificate,
    isPublic,
    hasName,
    isCurrent,
  }: {
    readonly certificate: DetailedPeerCertificate
    readonly isPublic: boolean
    readonly hasName: boolean
    readonly isCurrent: boolean
  },
  findings: Findings,
): void {
  const reasons = [
    isPublic
      ? undefined
      : 'no public authority signed it; each browser needs the authority installed',
    hasName ? undefined : 'the name differs',
    certificate.subjectaltname === undefined ? 'it has no alternative name' : undefined,
    isCurrent ? undefined : 'it is not valid today',
  ].filter((reason) => reason !== undefined)
  if (reasons.length === 0) findings.add('browsers', 'ok', 'a browser will accept this certificate')
  else
    findings.add('browsers', 'note', 'a browser will refuse this certificate', reasons.join('; '))
}

async function lookAtUpgrade(
  url: URL,
  { tls = {}, headers = {} }: EndpointOptions,
  findings: Findings,
  timeout: number,
): Promise<boolean> {
  const target = new URL(url.href.replace(/^ws/, 'http'))
  // Credentials in the URL are those of CONNECT.
  target.username = ''
  target.password = ''
  const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
    headers: {
      ...headers,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'bXF3aXJlIGxvb2tzIDE2Yg==',
      'sec-websocket-protocol': 'mqtt',
    },
    ...(tls.ca !== undefined && { ca: tls.ca as never }),
    ...(tls.cert !== undefined && { cert: tls.cert as never, key: tls.key as never }),
    ...(tls.servername !== undefined && { servername: tls.servername }),
    rejectUnauthorized: false,
  })
  const late = Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => request.destroy(late), timeout)
  request.end()
  try {
    const [response, kind] = await Promise.race([
      once(request, 'upgrade').then(([given]) => [given as IncomingMessage, 'upgrade'] as const),
      once(request, 'response').then(([given]) => [given as IncomingMessage, 'response'] as const),
    ])
    if (kind === 'response') {
      findings.add(
        'WebSocket',
        'failed',
        `HTTP ${response.statusCode} ${printable(response.statusMessage ?? '')}`,
        meaningOfStatus(response.statusCode ?? 0, url),
      )
      return false
    }
    const protocol = response.headers['sec-websocket-protocol']
    if (protocol === 'mqtt') findings.add('WebSocket', 'ok', `HTTP 101, sub-protocol mqtt`)
    else
      findings.add(
        'WebSocket',
        'differs',
        protocol === undefined
          ? 'HTTP 101, no sub-protocol'
          : `HTTP 101, sub-protocol ${printable(protocol)}`,
        'it must choose mqtt [MQTT-6.0.0-4]; browsers close such a connection',
      )
    return protocol === 'mqtt'
  } catch (error) {
    findings.add('WebSocket', 'failed', codeOf(error), 'the port does not speak HTTP, or hangs up')
    return false
  } finally {
    clearTimeout(timer)
    request.destroy()
  }
}

function meaningOfStatus(status: number, { pathname }: URL): string {
  if (status === 401 || status === 403) return 'it wants credentials for HTTP: --header'
  if (status === 400 || status === 404)
    return `is the path ${pathname} right? Brokers often have /mqtt or /`
  if (status === 426 || status === 200)
    return `no WebSocket at the path ${pathname}; brokers often have /mqtt or /`
  return status >= 300 && status < 400
    ? 'it leads elsewhere; dial that address'
    : 'the server refuses the upgrade'
}

function since(start: number): string {
  return `${(performance.now() - start).toFixed(0)} ms`
}

function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}
