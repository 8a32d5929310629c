/**
 * Converts TLS settings to Node's, for tls.ts and websocket-node.ts.
 *
 * Errors in certificates and keys are found here, before any connection is made. Only `insecure`
 * weakens verification, and key material never appears in an error message.
 */

import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type SecureContext,
  type TlsOptions as ServerOptions,
} from 'node:tls'
import { MqttError } from '../errors.js'
import type { TlsOptions } from './transport.js'

/**
 * Options of `tls.connect` for these settings. Throws `ERR_INVALID_OPTION` for unusable contents;
 * warns for `insecure`.
 */
export function clientContext(tls: TlsOptions, host: string): ConnectionOptions {
  const name = tls.servername ?? host
  const insecure = insecureReason(tls)
  const options: ConnectionOptions = {
    secureContext: secureContext(tls),
    rejectUnauthorized: insecure === undefined,
    // SNI does not allow addresses, but the certificate is checked for them.
    servername: isIP(name) ? '' : name,
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
  }
  if (tls.alpn?.length) options.ALPNProtocols = [...tls.alpn]
  if (insecure !== undefined) warn(host, insecure)
  return options
}

/**
 * Options of `tls.createServer` for these settings. With `ca`, a client certificate is required.
 * Throws like {@link clientContext}.
 */
export function serverContext(tls: TlsOptions): ServerOptions {
  secureContext(tls)
  return {
    ...contents(tls),
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ...(tls.alpn?.length && { ALPNProtocols: [...tls.alpn] }),
    ...(tls.ca !== undefined && { requestCert: true, rejectUnauthorized: true }),
  }
}

function secureContext(tls: TlsOptions): SecureContext {
  for (const ca of listOf(tls.ca)) checkCertificates(ca, 'tls.ca')
  if (tls.cert !== undefined) checkCertificates(bufferOf(tls.cert), 'tls.cert')
  try {
    return createSecureContext({ ...contents(tls), minVersion: tls.minVersion ?? 'TLSv1.2' })
  } catch (cause) {
    throw invalid('tls.key', 'tls.key cannot be read, or does not belong to tls.cert', cause)
  }
}

function contents(tls: TlsOptions) {
  return {
    ...(tls.ca !== undefined && { ca: listOf(tls.ca) }),
    ...(tls.cert !== undefined && { cert: bufferOf(tls.cert) }),
    ...(tls.key !== undefined && { key: bufferOf(tls.key) }),
    ...(tls.passphrase !== undefined && { passphrase: tls.passphrase }),
  }
}

function listOf(ca: TlsOptions['ca']): Buffer[] {
  if (ca === undefined) return []
  const list = typeof ca === 'string' || ca instanceof Uint8Array ? [ca] : ca
  if (list.length === 0) throw invalid('tls.ca', 'tls.ca is an empty list')
  return list.map(bufferOf)
}

function bufferOf(pem: string | Uint8Array): Buffer {
  return typeof pem === 'string'
    ? Buffer.from(pem)
    : Buffer.from(pem.buffer, pem.byteOffset, pem.byteLength)
}

// OpenSSL silently skips unreadable certificates in a list; the client would then trust none, or
// fewer than given.
function checkCertificates(pem: Buffer, option: string): void {
  const blocks = pem
    .toString('latin1')
    .match(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END/g)
  if (!blocks) throw invalid(option, `${option} holds no certificate in PEM form`)
  for (const block of blocks) {
    const body = block.slice(block.indexOf('-----', 5) + 5, -8)
    try {
      new X509Certificate(Buffer.from(body, 'base64'))
    } catch (cause) {
      throw invalid(option, `${option} holds a certificate that cannot be read`, cause)
    }
  }
}

function insecureReason(tls: TlsOptions): string | undefined {
  const reason: unknown = tls.insecure
  if (reason === undefined) return undefined
  if (typeof reason === 'string' && reason.trim() !== '') return reason
  throw invalid(
    'tls.insecure',
    'tls.insecure takes the reason for which verification is turned off',
  )
}

function warn(host: string, reason: string): void {
  process.emitWarning(`The TLS certificate of ${host} is not verified: ${reason}`, {
    type: 'SecurityWarning',
    code: 'MQWIRE_TLS_INSECURE',
  })
}

function invalid(option: string, message: string, cause?: unknown): MqttError {
  return new MqttError(
    'ERR_INVALID_OPTION',
    message,
    cause === undefined ? { option } : { option, cause },
  )
}
