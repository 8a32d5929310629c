/**
 * Certificates for the TLS tests, made by `openssl` when the tests start: nothing expires in the repository, and no key is kept in it.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate with its key, both PEM. */
export interface Identity {
  readonly cert: string
  readonly key: string
}

/** What one leaf certificate says. */
export interface Leaf {
  /** Subject alternative names, as openssl writes them: `DNS:a.test,IP:127.0.0.1`. */
  readonly names?: string
  /** Days from now to its end; negative for an expired one. Default 2. */
  readonly days?: number
  /** Encrypts the key. */
  readonly passphrase?: string
}

/** Whether the tests can make certificates here. */
export function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Runs `use` with a folder that is removed afterwards. */
function inFolder<T>(use: (folder: string, openssl: (...parts: string[]) => void) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'mqwire-tls-'))
  try {
    return use(folder, (...parts) => execFileSync('openssl', parts, { cwd: folder, stdio: 'pipe' }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const newKey = ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', 'key.pem']

/** A certificate that signs itself: an authority, or a stranger. */
export function selfSigned(name: string, names = 'DNS:localhost,IP:127.0.0.1'): Identity {
  return inFolder((folder, openssl) => {
    openssl(...newKey)
    openssl('req', '-x509', '-new', '-key', 'key.pem', '-subj', `/CN=${name}`, '-days', '2', '-addext', `subjectAltName=${names}`, '-out', 'cert.pem')
    return { cert: readFileSync(join(folder, 'cert.pem'), 'utf8'), key: readFileSync(join(folder, 'key.pem'), 'utf8') }
  })
}

/** A certificate that the authority signs. */
export function issue(authority: Identity, { names = 'DNS:localhost,IP:127.0.0.1', days = 2, passphrase }: Leaf = {}): Identity {
  return inFolder((folder, openssl) => {
    writeFileSync(join(folder, 'ca.pem'), authority.cert)
    writeFileSync(join(folder, 'ca-key.pem'), authority.key)
    writeFileSync(join(folder, 'extensions'), `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`)
    openssl(...newKey)
    openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=leaf', '-out', 'request.pem')
    const by = ['-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial', '-extfile', 'extensions']
    openssl('x509', '-req', '-in', 'request.pem', ...by, '-days', String(days), '-out', 'cert.pem')
    if (passphrase) openssl('ec', '-in', 'key.pem', '-aes256', '-passout', `pass:${passphrase}`, '-out', 'locked.pem')
    const key = readFileSync(join(folder, passphrase ? 'locked.pem' : 'key.pem'), 'utf8')
    return { cert: readFileSync(join(folder, 'cert.pem'), 'utf8'), key }
  })
}

/** A certificate that the authority signs, valid from one day to another: days from now, negative ones in the past. */
export function issueBetween(authority: Identity, from: number, until: number, names = 'DNS:localhost,IP:127.0.0.1'): Identity {
  return inFolder((folder, openssl) => {
    writeFileSync(join(folder, 'ca.pem'), authority.cert)
    writeFileSync(join(folder, 'ca-key.pem'), authority.key)
    writeFileSync(join(folder, 'extensions'), `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`)
    writeFileSync(join(folder, 'index.txt'), '')
    writeFileSync(join(folder, 'serial'), '1000\n')
    writeFileSync(
      join(folder, 'ca.cnf'),
      '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n',
    )
    openssl(...newKey)
    openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=leaf', '-out', 'request.pem')
    const by = ['-config', 'ca.cnf', '-batch', '-notext', '-cert', 'ca.pem', '-keyfile', 'ca-key.pem', '-extfile', 'extensions']
    openssl('ca', ...by, '-startdate', stamp(from), '-enddate', stamp(until), '-in', 'request.pem', '-out', 'cert.pem')
    return { cert: readFileSync(join(folder, 'cert.pem'), 'utf8'), key: readFileSync(join(folder, 'key.pem'), 'utf8') }
  })
}

/** A day as openssl writes it. */
function stamp(days: number): string {
  const [date = ''] = new Date(Date.now() + days * 86_400_000).toISOString().split('.')
  return `${date.replaceAll('-', '').replaceAll(':', '').replace('T', '')}Z`
}
