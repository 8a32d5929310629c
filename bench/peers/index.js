/**
 * Starts what stands at the other end of a measurement: the C peer where there is a compiler, else the one in Node, and mosquitto.
 *
 * Each is a process of its own on a free port, and ends with the process that started it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pinned } from '../child.js'

const here = path.dirname(fileURLToPath(import.meta.url))
const cache = path.join(here, '..', '..', 'node_modules', '.cache', 'mqwire-bench')

/** Names that are taken for not installed, separated by commas: `BENCH_WITHOUT=mosquitto,cc`. */
const without = (process.env.BENCH_WITHOUT ?? '').split(',')

/** Where a program is; undefined when it is not installed. */
export function find(name) {
  if (without.includes(name)) return undefined
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
    '/usr/local/go/bin',
    `${process.env.HOME}/.cargo/bin`,
  ]
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file))
}

// Compiled once per version of its source.
function compiled() {
  const cc = find('cc')
  if (cc === undefined || process.platform !== 'linux') return undefined
  const source = path.join(here, 'peer.c')
  const program = path.join(
    cache,
    `peer-${createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16)}`,
  )
  if (existsSync(program)) return program
  mkdirSync(cache, { recursive: true })
  const fresh = `${program}.${process.pid}`
  const run = spawnSync(cc, ['-O2', '-pthread', '-o', fresh, source], { encoding: 'utf8' })
  if (run.status !== 0) return undefined
  renameSync(fresh, program)
  return program
}

/** Starts the peer, on one core where a number is given. `kind` is `'C'` or `'Node'`. */
export function startPeer(core) {
  const program = compiled()
  const command = program === undefined ? [process.execPath, path.join(here, 'peer.js')] : [program]
  const [first, ...rest] = core === undefined ? command : pinned(core, command)
  return started(program === undefined ? 'Node' : 'C', first, rest)
}

/** Starts the peer in Node over TLS, with a certificate of its own: `ca` is its file. */
export async function startTlsPeer() {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-'))
  const [key, ca] = ['key.pem', 'certificate.pem'].map((name) => path.join(folder, name))
  const made = spawnSync(
    find('openssl'),
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-days', '2', '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
      ...['-keyout', key, '-out', ca],
    ],
    { encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`)
  const peer = await started('Node', process.execPath, [path.join(here, 'peer.js'), folder])
  const stop = () => {
    peer.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { ...peer, ca, stop }
}

async function started(kind, command, parameters) {
  const child = spawn(command, parameters, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => undefined)
  const port = await new Promise((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(Number(String(line))))
    child.once('exit', (code) => reject(new Error(`the peer ended with ${code}`)))
    child.once('error', reject)
  })
  return {
    kind,
    port,
    pid: child.pid,
    stop: () => child.kill('SIGKILL'),
  }
}

/** A port that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** What mosquitto says of its version; undefined when it is not installed. */
export function mosquittoVersion() {
  const program = find('mosquitto')
  if (program === undefined) return undefined
  return (
    /version (\d+\.\d+\.\d+)/.exec(spawnSync(program, ['-h'], { encoding: 'utf8' }).stdout)?.[1] ??
    'unknown'
  )
}

/** Starts mosquitto with nothing in its way: no limits on queues and windows, no log, no memory of its last life. */
export async function startMosquitto() {
  const program = find('mosquitto')
  if (program === undefined) throw new Error('mosquitto not found')
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-bench-'))
  const port = await freePort()
  const lines = [
    ...(process.getuid?.() === 0 ? ['user root'] : []),
    `listener ${port} 127.0.0.1`,
    'allow_anonymous true',
    'persistence false',
    'max_queued_messages 0',
    'max_queued_bytes 0',
    'max_inflight_messages 0',
    'set_tcp_nodelay true',
    'log_type none',
    '',
  ]
  writeFileSync(path.join(folder, 'mosquitto.conf'), lines.join('\n'))
  const child = spawn(program, ['-c', path.join(folder, 'mosquitto.conf')], { stdio: 'ignore' })
  const stop = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', stop)
  for (let attempt = 0; attempt < 200 && child.exitCode === null; attempt++) {
    if (await accepts(port)) return { port, pid: child.pid, stop }
    await sleep(25)
  }
  stop()
  throw new Error('mosquitto did not start')
}
