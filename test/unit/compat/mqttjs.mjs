/**
 * Runs the tests that MQTT.js has for its own client against `mqwire/compat`, and counts by file and group what passes.
 *
 *     MQWIRE_MQTTJS=folder npm run lab -- brokers compat        prints the table
 *     MQWIRE_MQTTJS=folder node test/unit/compat/mqttjs.mjs --update  writes it into docs/compat.md, between <!-- compat --> and <!-- /compat -->
 *
 * The folder is a checkout of MQTT.js, with what its tests import installed. Nothing of it is kept here: each test file is bundled, beside itself, with
 * `mqwire/compat` in place of what it imports from `src`, and the bundle is removed again. Three things are put in its place for the tests' sake:
 * `client.stream`, which they cut, is the client's last socket; a test that waits for more than three seconds has failed; and what MQTT.js exports and
 * mqwire/compat does not (stores, providers) comes from the checkout, so that a test which needs it fails by itself, and not its whole file.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { argumentsOf } from '../../../examples/arguments.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = path.join(root, 'docs', 'compat.md')
const reasonsFile = path.join(root, 'test', 'unit', 'compat', 'reasons.json')
const block = /(<!-- compat -->\n)[\s\S]*?(<!-- \/compat -->)/
const files = ['client', 'client_mqtt5', 'websocket_client', 'secure_client', 'mqtt']
/** Milliseconds for a test, and for a file. */
const patience = 3_000
const longest = 400_000

/** What stands for `src`. */
const substitute = (checkout) => `
import net from 'node:net'
import * as compat from ${JSON.stringify(path.join(root, 'dist', 'compat', 'index.js'))}
import * as theirs from ${JSON.stringify(path.join(checkout, 'src', 'mqtt.ts'))}
let last
const { connect: dial } = net.Socket.prototype
net.Socket.prototype.connect = function (...given) {
  last = this
  return dial.apply(this, given)
}
const cut = (client) => Object.defineProperty(client, 'stream', { configurable: true, get: () => last })
const MqttClient = new Proxy(compat.MqttClient, { construct: (target, given, made) => cut(Reflect.construct(target, given, made)) })
const connect = (...given) => cut(compat.connect(...given))
const connectAsync = async (...given) => cut(await compat.connectAsync(...given))
const { default: _, ...others } = theirs
const ours = { ...others, ...compat, MqttClient, Client: MqttClient, connect, connectAsync }
module.exports = { ...ours, default: ours }
`

/** What stands for a file where it is to be itself. */
const itself = (checkout, name) => {
  const file = JSON.stringify(path.join(checkout, 'src', `${name}.ts`))
  return name === 'index'
    ? `export * from ${file}\nexport { default } from ${file}`
    : `export * from ${file}`
}

/** What stands for a file that has the class of errors. */
const shared = (checkout) => `
export * from ${JSON.stringify(path.join(checkout, 'src', 'lib', 'shared.ts'))}
export { ErrorWithReasonCode } from ${JSON.stringify(path.join(root, 'dist', 'compat', 'index.js'))}
`

/**
 * What stands for `node:test`: one test after the other, each with its time. What nobody catches is the fault of the test that runs, and ends it alone;
 * timers that a test has put in place of the real ones, and servers that it has left, are gone with it.
 */
const runner = `
import net from 'node:net'
const real = { setTimeout, clearTimeout, setImmediate }
const suiteOf = (name, outer) => ({ name, outer, entries: [], before: [], after: [], beforeEach: [], afterEach: [] })
const all = suiteOf('', undefined)
let current = all
let fail = () => undefined
process.exit = () => undefined
// The folder of a store goes with the test that was refused one.
const isLate = (error) => String(error?.message).includes('test-store_')
for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, (error) => isLate(error) || fail(error))
const servers = new Map()
const { listen } = net.Server.prototype
net.Server.prototype.listen = function (...given) {
  const sockets = new Set()
  if (!servers.has(this)) this.on('connection', (socket) => sockets.add(socket))
  servers.set(this, sockets)
  return listen.apply(this, given)
}
function closeOthers(known) {
  for (const [server, sockets] of servers) {
    if (known.has(server)) continue
    servers.delete(server)
    for (const socket of sockets) socket.destroy()
    if (server.listening) net.Server.prototype.close.call(server)
  }
}
export function describe(name, ...rest) {
  const suite = suiteOf(name, current)
  current.entries.push(suite)
  current = suite
  try {
    rest.at(-1)()
  } finally {
    current = suite.outer
  }
}
// What MQTT.js leaves out of its own run is counted.
const leaveOut = (name) => process._rawDebug(JSON.stringify({ names: [...pathOf(current), name], leftOut: true }))
export const it = (name, ...rest) => void current.entries.push({ name, body: rest.at(-1), options: rest.length > 1 ? rest[0] : {} })
for (const each of [describe, it]) each.skip = leaveOut
export const test = it
export const before = (hook) => void current.before.push(hook)
export const after = (hook) => void current.after.push(hook)
export const beforeEach = (hook) => void current.beforeEach.push(hook)
export const afterEach = (hook) => void current.afterEach.push(hook)
export default it

function settled(body, context, time) {
  return new Promise((resolve, reject) => {
    const timer = real.setTimeout(() => end(new Error('no end within ' + time + ' ms')), time)
    const end = (error) => {
      real.clearTimeout(timer)
      if (error) reject(error)
      else resolve()
    }
    fail = (error) => end(error ?? new Error('failed'))
    const called = async () => (body.length >= 2 ? void body(context, end) : (await body(context), end()))
    called().catch(fail)
  })
}
const quietly = (body) => settled(body, {}, ${patience}).catch(() => undefined)
const above = (suite, kind) => (suite === undefined ? [] : [...above(suite.outer, kind), ...suite[kind]])
const pathOf = (suite) => (suite === all ? [] : [...pathOf(suite.outer), suite.name])

async function one(suite, { name, body, options }) {
  const last = []
  const known = new Set(servers.keys())
  for (const hook of above(suite, 'beforeEach')) await quietly(hook)
  const why = await settled(body, { after: (hook) => last.push(hook), diagnostic() {} }, Math.min(options.timeout ?? ${patience}, ${patience})).then(
    () => undefined,
    (error) => String(error?.message ?? error).split('\\n', 1)[0],
  )
  for (const name of ['setTimeout', 'setInterval', 'Date']) globalThis[name]?.clock?.uninstall?.()
  fail = () => undefined
  for (const hook of [...last, ...above(suite, 'afterEach')]) await quietly(hook)
  closeOthers(known)
  process._rawDebug(JSON.stringify({ names: [...pathOf(suite), name], passed: why === undefined, why }))
}

async function run(suite) {
  for (const hook of suite.before) await quietly(hook)
  for (const entry of suite.entries) await (entry.entries === undefined ? one(suite, entry) : run(entry))
  for (const hook of suite.after) await quietly(hook)
}
real.setImmediate(() => run(all).finally(() => process.reallyExit(0)))
`

/** Resolves what the tests import. */
function plugin(checkout) {
  return {
    name: 'mqwire',
    setup({ onResolve, onLoad }) {
      const tests = path.join(checkout, 'test', 'node')
      onResolve({ filter: /^(?:\.\.\/)+src$|^src$/ }, ({ importer }) =>
        importer.startsWith(tests) ? { path: 'src', namespace: 'mqwire' } : undefined,
      )
      onResolve({ filter: /^src\/lib\/shared$/ }, ({ namespace }) =>
        namespace === 'file' ? { path: 'shared', namespace: 'mqwire' } : undefined,
      )
      onResolve({ filter: /^src\// }, ({ path: name }) => ({
        path: path.join(checkout, `${name}.ts`),
      }))
      onResolve({ filter: /^node:test$/ }, ({ namespace }) =>
        namespace === 'file'
          ? { path: 'test', namespace: 'mqwire' }
          : { path: 'node:test', external: true },
      )
      onResolve({ filter: /\/dist\/compat\/index\.js$/ }, ({ path: file }) => ({
        path: file,
        external: true,
      }))
      onLoad({ filter: /.*/, namespace: 'mqwire' }, ({ path: name }) => ({
        contents: {
          src: values.theirs ? itself(checkout, 'index') : substitute(checkout),
          shared: values.theirs ? itself(checkout, 'lib/shared') : shared(checkout),
          test: runner,
        }[name],
        loader: 'js',
        resolveDir: tests,
      }))
    },
  }
}

/** Runs one file: its tests, in their order. */
async function run(checkout, name) {
  const outfile = path.join(checkout, 'test', 'node', `mqwire-${name}.cjs`)
  await build({
    entryPoints: [path.join(checkout, 'test', 'node', `${name}.ts`)],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    logLevel: 'error',
    plugins: [plugin(checkout)],
  })
  try {
    const output = await new Promise((resolve) => {
      const child = spawn(process.execPath, ['--no-warnings', outfile], {
        cwd: checkout,
        stdio: ['ignore', 'ignore', 'pipe'],
        timeout: longest,
        killSignal: 'SIGKILL',
      })
      let text = ''
      child.stderr.on('data', (chunk) => {
        text += chunk
      })
      child.on('close', () => resolve(text))
    })
    const lines = output.split('\n').filter((line) => line.startsWith('{"names"'))
    return lines.map((line) => JSON.parse(line))
  } finally {
    rmSync(outfile, { force: true })
  }
}

/** Tests by group, which is the first two levels of a file. */
function grouped(results) {
  const groups = new Map()
  for (const { names, passed, leftOut } of results) {
    if (leftOut) continue
    // The file itself comes as a test, too.
    if (names.length === 1 && names[0].endsWith('.cjs')) continue
    const group =
      names
        .slice(0, -1)
        .slice(0, 2)
        .filter((name) => !name.endsWith('.cjs'))
        .at(-1) ?? 'others'
    const count = groups.get(group) ?? { passed: 0, failed: 0 }
    count[passed ? 'passed' : 'failed'] += 1
    groups.set(group, count)
  }
  return groups
}

function tableOf(results, reasons) {
  const rows = []
  const total = { passed: 0, failed: 0 }
  for (const [file, tests] of Object.entries(results)) {
    for (const [group, { passed, failed }] of grouped(tests)) {
      total.passed += passed
      total.failed += failed
      const reason = failed === 0 ? '' : (reasons[`${file}: ${group}`] ?? reasons[group] ?? '')
      rows.push(`| ${file} | ${group} | ${passed} | ${failed} | ${reason} |`)
    }
  }
  const left = Object.values(results)
    .flat()
    .filter(({ leftOut }) => leftOut).length
  const sum = `| all | | ${total.passed} | ${total.failed} | and ${left} that MQTT.js leaves out itself |`
  return [
    '| file | group | passed | failed | why not |',
    '| --- | --- | ---: | ---: | --- |',
    ...rows,
    sum,
    '',
  ].join('\n')
}

const { values } = argumentsOf({
  usage: 'node test/unit/compat/mqttjs.mjs [options]',
  about:
    'Runs the tests of a checkout of MQTT.js against mqwire/compat. MQWIRE_MQTTJS names the folder of the checkout.',
  options: {
    update: { text: 'writes the table into docs/compat.md' },
    only: { value: 'FILE', text: 'runs one file, such as client' },
    theirs: { text: 'runs MQTT.js itself, to see what fails for the runner alone' },
    failures: { text: 'prints each test that failed, with its reason' },
  },
})
const checkout = process.env['MQWIRE_MQTTJS']
if (checkout === undefined || !existsSync(path.join(checkout, 'test', 'node'))) {
  console.error('MQWIRE_MQTTJS has to name a checkout of MQTT.js')
  process.exit(1)
}
const results = {}
for (const name of files.filter((each) => values.only === undefined || each === values.only))
  results[name] = await run(path.resolve(checkout), name)
if (values.failures)
  for (const [file, tests] of Object.entries(results))
    for (const { names, passed, leftOut, why } of tests)
      if (!passed && !leftOut) console.log(`${file}: ${names.join(' > ')}: ${why}`)
const reasons = existsSync(reasonsFile) ? JSON.parse(readFileSync(reasonsFile, 'utf8')) : {}
const table = tableOf(results, reasons)
console.log(table)
if (values.update) {
  const text = readFileSync(page, 'utf8')
  writeFileSync(
    page,
    text.replace(block, (_, start, end) => `${start}${table}${end}`),
  )
}
