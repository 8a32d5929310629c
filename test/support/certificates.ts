/** Certificates for the TLS tests, made by `openssl` when the tests start: nothing expires in the repository, and no key is kept in it. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Identity {
  readonly cert: string
  readonly key: string
}

interface Leaf {
  /** Subject alternative names, as openssl writes them: `DNS:a.test,IP:127.0.0.1`. */
  readonly names?: string
  /** Days from now to its end; negative for an expired one. Default 2. */
  readonly days?: number
  readonly passphrase?: string
}

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

function identityIn(folder: string, key = 'key.pem'): Identity {
  return {
    cert: readFileSync(join(folder, 'cert.pem'), 'utf8'),
    key: readFileSync(join(folder, key), 'utf8'),
  }
}

const here = 'DNS:localhost,IP:127.0.0.1'
const newKey = 'ecparam -name prime256v1 -genkey -noout -out key.pem'.split(' ')

/** A certificate that signs itself: an authority, or a stranger. */
export function selfSigned(name: string, names = here): Identity {
  return inFolder((folder, openssl) => {
    openssl(...newKey)
    const named = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`]
    openssl(...'req -x509 -new -key key.pem -days 2 -out cert.pem'.split(' '), ...named)
    return identityIn(folder)
  })
}

export function issue(authority: Identity, { names, days = 2, passphrase }: Leaf = {}): Identity {
  return issueBetween(authority, Math.min(0, days - 1), days, names, passphrase)
}

const settings = [
  '[ca]',
  'default_ca=d',
  '[d]',
  'database=index.txt',
  'serial=serial',
  'new_certs_dir=.',
]
const policy = ['default_md=sha256', 'policy=p', '[p]', 'commonName=supplied', '']

/** The same, valid from one day to another: days from now, negative ones in the past. */
export function issueBetween(
  authority: Identity,
  from: number,
  until: number,
  names = here,
  passphrase?: string,
): Identity {
  return inFolder((folder, openssl) => {
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
    write('ca.pem', authority.cert)
    write('ca-key.pem', authority.key)
    write('extensions', `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`)
    write('index.txt', '')
    write('serial', '1000\n')
    write('ca.cnf', [...settings, ...policy].join('\n'))
    openssl(...newKey)
    openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=leaf', '-out', 'request.pem')
    const by =
      '-config ca.cnf -batch -notext -cert ca.pem -keyfile ca-key.pem -extfile extensions'.split(
        ' ',
      )
    openssl(
      'ca',
      ...by,
      '-startdate',
      stamp(from),
      '-enddate',
      stamp(until),
      '-in',
      'request.pem',
      '-out',
      'cert.pem',
    )
    if (passphrase)
      openssl(
        'ec',
        '-in',
        'key.pem',
        '-aes256',
        '-passout',
        `pass:${passphrase}`,
        '-out',
        'locked.pem',
      )
    return identityIn(folder, passphrase && 'locked.pem')
  })
}

function stamp(days: number): string {
  const [date = ''] = new Date(Date.now() + days * 86_400_000).toISOString().split('.')
  return `${date.replace(/[-:T]/g, '')}Z`
}

let made: { readonly authority: Identity; readonly server: Identity } | undefined

/** It assumes that there is `openssl`. */
export function identities(): { readonly authority: Identity; readonly server: Identity } {
  if (made === undefined) {
    const authority = selfSigned('authority')
    made = { authority, server: issue(authority) }
  }
  return made
}
