/** The commands as they are packed, against the broker in memory: what they print, and how they end. */
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MemoryBroker, type MemoryBrokerOptions } from '../../src/testing/node.js'
import { freePort, listening } from '../support/servers.js'
import { bin, mqwire, start } from './program.js'

const folder = await mkdtemp(path.join(tmpdir(), 'mqwire-cli-'))
afterAll(() => rm(folder, { recursive: true }))
const fileOf = (name: string): string => path.join(folder, name)

let broker: MemoryBroker
let url: string[]

async function serve(options: MemoryBrokerOptions = {}): Promise<void> {
  broker = new MemoryBroker(options)
  const { urls } = await broker.serve({ tcp: 0 })
  url = ['--url', urls[0] ?? '']
}

beforeEach(() => serve())
afterEach(() => broker.close())

/** Fulfils when a client has subscribed. */
const subscribed = (filter: string): Promise<void> =>
  expect
    .poll(() =>
      [...broker.sessions.values()].some(({ subscriptions }) =>
        subscriptions.some((each) => each.filter === filter),
      ),
    )
    .toBe(true)

describe('sub', () => {
  it('prints topic and text, escapes what a terminal would obey, and ends after a number', async () => {
    const sub = start(['sub', ...url, '-n', '3', 'a/#'])
    await subscribed('a/#')
    for (const payload of ['one', 'two\u001b[2J\n', new Uint8Array([0xff, 0])])
      broker.publish({ topic: 'a/b', payload })
    expect(await sub.ended).toEqual({
      code: 0,
      out: 'a/b one\na/b two\\u{1b}[2J\\u{a}\na/b 2 bytes: ff00\n',
      err: '',
    })
  })

  it('prints lines of JSON, bytes alone, and formats', async () => {
    const properties = {
      contentType: 'text/plain',
      correlationData: new Uint8Array([1, 2]),
      userProperties: [['k', 'v']] as [string, string][],
    }
    broker.publish({ topic: 'a', payload: 'x', qos: 1, retain: true, properties })
    const read = async (...args: string[]): Promise<string> =>
      (await mqwire(['sub', ...url, '-q', '1', '-n', '1', 'a', ...args])).out
    const [json, raw, format] = await Promise.all([
      read('--json'),
      read('--raw'),
      read('--format', '%q %r %t=%p %x %b %l %C %D %P %%\\n'),
    ])
    const { time, ...record } = JSON.parse(json)
    expect(new Date(time).toISOString()).toBe(time)
    expect(record).toEqual({
      topic: 'a',
      qos: 1,
      retain: true,
      payload: 'x',
      properties: { ...properties, correlationData: 'AQI=' },
    })
    expect(raw).toBe('x')
    expect(format).toBe('1 1 a=x 78 eA== 1 text/plain 0102 k:v %\n')
  })

  it('leaves out topics and live messages, and tests a permission', async () => {
    for (const topic of ['a/1', 'a/2']) broker.publish({ topic, payload: topic, retain: true })
    const retained = await mqwire([
      'sub',
      ...url,
      '--retained-only',
      '--quiet-for',
      '300ms',
      '--exclude',
      '+/1',
      'a/#',
    ])
    expect(retained).toEqual({ code: 0, out: 'a/2 (retained) a/2\n', err: '' })
    const granted = await mqwire(['sub', ...url, '--until-subscribed', '-q', '1', 'a/#'])
    expect(granted).toEqual({ code: 0, out: '', err: 'a/#: granted at QoS 1\n' })
  })

  it('decodes by a contract', async () => {
    const contract = fileOf('contract.mjs')
    const codec =
      "{ encode: String, decode: (bytes) => { if (bytes[0] > 57) throw new Error('no number'); return { level: Number(Buffer.from(bytes)) } } }"
    const text = `export const tanks = { level: { kind: 'channel', topic: { match: (name) => (name === 'level' ? {} : undefined) }, codec: ${codec} } }`
    await writeFile(contract, text)
    const sub = start(['sub', ...url, '-n', '3', '--contract', contract, '#'])
    await subscribed('#')
    for (const [topic, payload] of [
      ['level', '7'],
      ['level', 'x'],
      ['other', 'x'],
    ] as const)
      broker.publish({ topic, payload })
    expect((await sub.ended).out).toBe('level {"level":7}\nlevel x (no number)\nother x\n')
  })

  it('prints decoded values that are not JSON, and says which cannot be printed', async () => {
    const contract = fileOf('values.mjs')
    const values = `{
      big: () => ({ n: 10n ** 20n, bytes: new Uint8Array([1, 2]), map: new Map([['k', 1]]) }),
      circle: () => { const value = {}; value.value = value; return value },
      nothing: () => undefined,
    }`
    const text = `const values = ${values}
      const channel = { kind: 'channel', topic: { match: () => ({}) }, codec: { decode: (bytes) => values[Buffer.from(bytes)]() } }
      export { channel }`
    await writeFile(contract, text)
    const sub = (...more: string[]) =>
      start(['sub', ...url, '-n', '3', '--contract', contract, ...more, 'v'])
    const [plain, json] = [sub(), sub('--json')]
    await expect.poll(() => broker.sessions.size).toBe(2)
    await subscribed('v')
    await expect
      .poll(() => [...broker.sessions.values()].every((each) => each.subscriptions.length === 1))
      .toBe(true)
    for (const payload of ['big', 'circle', 'nothing']) broker.publish({ topic: 'v', payload })
    const lines = (await plain.ended).out.split('\n')
    expect(lines[0]).toBe('v {"n":"100000000000000000000","bytes":"AQI=","map":{"k":1}}')
    expect(lines[1]).toContain('v circle (')
    expect(lines[1]).toContain('circular')
    expect(lines[2]).toBe('v null')
    const records = (await json.ended).out.trim().split('\n')
    expect(records.map((line) => Object.keys(JSON.parse(line).decoded))).toEqual([
      ['channel', 'value'],
      ['channel', 'problem'],
      ['channel', 'value'],
    ])
  })

  it('one refused filter among good ones is named, after what the others have', async () => {
    await broker.close()
    await serve({ authorizeSubscribe: (_client, { filter }) => filter !== 'secret/#' })
    broker.publish({ topic: 'a/1', payload: 'x', retain: true })
    const ends = await Promise.all([
      mqwire(['sub', ...url, '--retained-only', '--quiet-for', '300ms', 'a/#', 'secret/#']),
      mqwire(['clear', ...url, '--yes', '--quiet-for', '300ms', 'a/#', 'secret/#']),
    ])
    for (const { code, out, err } of ends) {
      expect({ code, out }).toEqual({ code: 3, out: expect.stringContaining('a/1') })
      expect(err).toContain('secret/#')
    }
    expect(broker.retained.size).toBe(1)
  })

  it.each([0, 1] as const)('loses nothing at QoS %i where its reader is slow', async (qos) => {
    const count = 20_000
    await broker.close()
    await serve({ maxQueuedMessages: count, maxBacklog: 1e9 })
    const sub = start(['sub', ...url, '-q', String(qos), '-n', String(count), '--raw', 'flood'])
    await subscribed('flood')
    sub.child.stdout.pause()
    const payload = `${'x'.repeat(99)}\n`
    for (let index = 0; index < count; index++) broker.publish({ topic: 'flood', payload, qos })
    await expect.poll(() => sub.child.stdout.readableLength).toBeGreaterThan(0)
    await new Promise((resolve) => setTimeout(resolve, 300))
    sub.child.stdout.resume()
    const { code, out, err } = await sub.ended
    expect({ code, lines: out.length / 100, err }).toEqual({ code: 0, lines: count, err: '' })
  })
})

describe('pub', () => {
  const got = (): string[] =>
    broker.accepted.map(({ topic, payload }) => `${topic} ${Buffer.from(payload)}`)

  it('publishes arguments, files, standard input, lines, and again', async () => {
    await writeFile(fileOf('payload'), 'from a file')
    const ends = [
      await mqwire(['pub', ...url, 'a', 'text']),
      await mqwire(['pub', ...url, 'a', '']),
      await mqwire(['pub', ...url, '-q', '2', 'a', '--file', fileOf('payload')]),
      await mqwire(['pub', ...url, '-q', '1', 'a'], { input: 'all\nof it' }),
      await mqwire(['pub', ...url, 'a', '--lines', '--quiet'], { input: 'one\ntwo\r\nthree' }),
      await mqwire(['pub', ...url, 'a', 'beat', '--repeat', '2', '--rate', '50', '--quiet']),
    ]
    expect(ends.map(({ code, out }) => [code, out])).toEqual(ends.map(() => [0, '']))
    expect(got()).toEqual(
      ['text', '', 'from a file', 'all\nof it', 'one', 'two', 'three', 'beat', 'beat'].map(
        (text) => `a ${text}`,
      ),
    )
  })

  it('sends flags and properties, and checks JSON', async () => {
    const given = [
      '-q',
      '1',
      '-r',
      '-D',
      'k=v=w',
      '--expiry',
      '9',
      '--response-topic',
      'b',
      '--correlation-data',
      'c',
      '--text',
    ]
    expect((await mqwire(['pub', ...url, 'a', '{"n":1}', '--json', ...given])).code).toBe(0)
    expect(broker.accepted[0]).toMatchObject({
      qos: 1,
      retain: true,
      properties: {
        contentType: 'application/json',
        payloadFormatIndicator: 1,
        messageExpiryInterval: 9,
        responseTopic: 'b',
        userProperties: [['k', 'v=w']],
      },
    })
    const wrong = await mqwire(['pub', ...url, 'a', '{n:1}', '--json'])
    expect(wrong.code).toBe(1)
    expect(wrong.err).toContain('the payload is not JSON')
    expect(got()).toHaveLength(1)
  })
})

describe('request and respond', () => {
  it('answer by a program, with its failure and its time', async () => {
    const responder = start([
      'respond',
      ...url,
      'math',
      '--timeout',
      '2s',
      '--exec',
      process.execPath,
      '--',
      '-e',
      `
      const text = require('node:fs').readFileSync(0, 'utf8')
      if (text === 'fail') process.exit(3)
      if (text === 'wait') setTimeout(() => {}, 60_000)
      else process.stdout.write(text.toUpperCase() + process.env.MQWIRE_REQUEST_TOPIC)`,
    ])
    await responder.said('answering math')
    const ask = (payload: string, ...more: string[]) =>
      mqwire(['request', ...url, 'math', payload, ...more])
    const [good, failed, late, silent] = await Promise.all([
      ask('it is '),
      ask('fail'),
      ask('wait', '--timeout', '500ms'),
      mqwire(['request', ...url, 'nothing', '', '--timeout', '300ms']),
    ])
    expect(good).toEqual({ code: 0, out: 'IT IS math', err: '' })
    expect(failed.code).toBe(3)
    expect(failed.err).toContain('ended with 3')
    expect([late.code, silent.code]).toEqual([4, 4])
    responder.child.kill('SIGINT')
    expect((await responder.ended).code).toBe(130)
  })

  it('what a program has started neither holds the answer nor outlives its time', async () => {
    const [held, file] = [fileOf('held'), fileOf('outlived')]
    const responder = start([
      'respond',
      ...url,
      'shell',
      '--timeout',
      '1s',
      '--exec',
      'sh',
      '--',
      '-c',
      `read -r line
      if [ "$line" = hold ]; then sleep 20 & echo $! > '${held}'; echo held; fi
      if [ "$line" = late ]; then (sleep 2; echo > '${file}') & wait; fi
      if [ "$line" = much ]; then head -c 17000000 /dev/zero; fi`,
    ])
    await responder.said('answering shell')
    const ask = (payload: string) =>
      mqwire(['request', ...url, 'shell', `${payload}\n`, '--timeout', '5s'])
    const [answer, late, much] = await Promise.all([ask('hold'), ask('late'), ask('much')])
    expect(answer).toMatchObject({ code: 0, out: 'held\n' })
    expect([late.code, much.code]).toEqual([3, 3])
    expect(late.err).toContain('1 s')
    expect(much.err).toContain('16 MiB')
    process.kill(Number(await readFile(held, 'utf8')))
    responder.child.kill('SIGINT')
    await responder.ended
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(existsSync(file)).toBe(false)
  })

  it('a time limit ends the programs that run; a caller learns no path of this machine', async () => {
    const timed = start(['respond', ...url, 'slow', '--for', '4s', '--exec', 'sleep', '--', '20'])
    const absent = start(['respond', ...url, 'absent', '--exec', '/not/there'])
    await Promise.all([timed.said('answering'), absent.said('answering')])
    const [slow, none] = await Promise.all([
      mqwire(['request', ...url, 'slow', '', '--timeout', '10s']),
      mqwire(['request', ...url, 'absent', '', '--timeout', '5s']),
    ])
    expect(slow.code).toBe(3)
    expect((await timed.ended).code).toBe(0)
    expect(none.code).toBe(3)
    expect(none.err).not.toContain('/not/there')
    await absent.said('/not/there')
    absent.child.kill('SIGINT')
    await absent.ended
  })
})

describe('clear', () => {
  it('shows what is retained, and removes it only with --yes', async () => {
    for (const topic of ['a/1', 'a/2', 'b']) broker.publish({ topic, payload: 'x', retain: true })
    const clear = (...more: string[]) =>
      mqwire(['clear', ...url, '--quiet-for', '300ms', 'a/#', ...more])
    const asked = await clear()
    expect(asked).toMatchObject({ code: 1, out: 'a/1 x\na/2 x\n' })
    expect(asked.err).toContain('--yes')
    expect(broker.retained.size).toBe(3)
    expect(await clear('--yes')).toEqual({ code: 0, out: 'a/1 x\na/2 x\n', err: '2 removed\n' })
    expect([...broker.retained.keys()]).toEqual(['b'])
    expect(await clear('--yes')).toMatchObject({
      code: 0,
      out: '',
      err: 'nothing is retained there\n',
    })
  })
})

describe('on a terminal', () => {
  /** Runs it on a terminal of its own, and types when a text stands there. */
  const typed = (args: readonly string[], when: string, keys: string): Promise<[number, string]> =>
    new Promise((resolve) => {
      const line = [bin, ...args].map((arg) => `'${arg}'`).join(' ')
      const child = spawn('script', ['-qec', line, '/dev/null'], {
        env: { ...process.env, TERM: 'xterm' },
      })
      let screen = ''
      let isTyped = false
      child.stdout.on('data', (chunk: Uint8Array) => {
        screen += Buffer.from(chunk)
        if (isTyped || !screen.includes(when)) return
        isTyped = true
        // The answer is read once the question stands.
        setTimeout(() => child.stdin.write(keys), 200)
      })
      child.on('close', (code) => resolve([code ?? -1, screen]))
    })

  it.each([
    ['y\r', 0, 0],
    ['n\r', 1, 1],
    ['\u0003', 130, 1],
    ['\u0004', 130, 1],
  ])('clear asks visibly; %j ends with %i', async (keys, code, left) => {
    broker.publish({ topic: 'a/1', payload: 'x', retain: true })
    const [ended, screen] = await typed(
      ['clear', ...url, '--quiet-for', '300ms', 'a/#'],
      'Remove this message? [y/N] ',
      keys,
    )
    expect(ended).toBe(code)
    // Drawn at the left edge, and not erased afterwards.
    const drawn = screen.slice(screen.lastIndexOf('Remove this message?'))
    expect(drawn.split('\r', 1)[0]).not.toContain('\u001b[0J')
    expect(broker.retained.size).toBe(left)
  })

  it('a password is asked without an echo', async () => {
    await broker.close()
    const seen: string[] = []
    await serve({
      authenticate: ({ password }) => {
        seen.push(Buffer.from(password ?? []).toString())
        return true
      },
    })
    const args = ['pub', ...url, '--username', 'u', '--ask-password', 'a', 'x']
    const [code, screen] = await typed(args, 'Password: ', 'geheim\r')
    expect([code, seen]).toEqual([0, ['geheim']])
    expect(screen).not.toContain('geheim')
  })
})

describe('record and replay', () => {
  it('give the same messages in the same order, with their time', async () => {
    const file = fileOf('plant.jsonl')
    const recorder = start(['record', ...url, 'plant/#', file, '-n', '4'])
    await subscribed('plant/#')
    broker.publish({ topic: 'plant/1', payload: 'text', qos: 2, retain: true })
    broker.publish({
      topic: 'plant/2',
      payload: new Uint8Array([0xfe, 0]),
      properties: { contentType: 'b' },
    })
    await new Promise((resolve) => setTimeout(resolve, 300))
    broker.publish({ topic: 'plant/1', payload: '', qos: 1 })
    broker.publish({ topic: 'other', payload: '' })
    broker.publish({ topic: 'plant/3', payload: 'é' })
    expect(await recorder.ended).toMatchObject({ code: 0, out: '' })
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).topic)).toEqual([
      'plant/1',
      'plant/2',
      'plant/1',
      'plant/3',
    ])
    const sums = (from: string | undefined): unknown[] =>
      broker.accepted
        .filter(
          (message) =>
            (message.from === undefined) === (from === undefined) &&
            message.topic.includes('plant'),
        )
        .map(({ topic, payload, qos, retain, properties }) => [
          topic.replace('again/', ''),
          [...payload],
          qos,
          retain,
          properties.contentType,
        ])
    const began = performance.now()
    expect((await mqwire(['replay', ...url, file, '--prefix', 'again/'])).code).toBe(0)
    expect(performance.now() - began).toBeGreaterThan(280)
    const before = lines
      .map((line) => JSON.parse(line))
      .map(({ topic, payload, base64, qos, retain, properties }) => [
        topic,
        [...Buffer.from(payload ?? base64, payload === undefined ? 'base64' : 'utf8')],
        qos,
        retain,
        properties?.contentType,
      ])
    expect(sums('client')).toEqual(before)
    const some = await mqwire([
      'replay',
      ...url,
      file,
      '--speed',
      'max',
      '--topics',
      'plant/1',
      '--loop',
      '2',
      '--no-retain',
    ])
    expect(some).toMatchObject({ code: 0, err: '4 messages published\n' })
    expect(await mqwire(['record', ...url, 'a', file])).toMatchObject({ code: 1 })
  })

  it('name the line that is wrong', async () => {
    const file = fileOf('wrong.jsonl')
    await writeFile(
      file,
      '{"time":"2026-01-01T00:00:00.000Z","topic":"a","payload":"x"}\n{"topic":"a"}\n',
    )
    const replay = await mqwire(['replay', ...url, file])
    expect(replay.code).toBe(1)
    expect(replay.err).toContain('wrong.jsonl:2: time must be')
  })

  it('properties do not fit MQTT 3.1.1, and can be left out', async () => {
    const file = fileOf('properties.jsonl')
    const record = { time: '2026-01-01T00:00:00Z', topic: 'a', qos: 1, payload: 'x' }
    await writeFile(
      file,
      `${JSON.stringify(record)}\n${JSON.stringify({ ...record, properties: { contentType: 't' } })}\n`,
    )
    const replay = (...more: string[]) =>
      mqwire(['replay', ...url, '--protocol', '4', file, ...more])
    const refused = await replay()
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('properties.jsonl:2: ')
    expect(refused.err).toContain('--no-properties')
    expect(refused.err).toContain('1 message published')
    expect((await replay('--no-properties')).code).toBe(0)
    expect(broker.accepted).toHaveLength(3)
  })
})

describe('broker', () => {
  it('serves, keeps what is retained, and takes hooks', async () => {
    const hooks = fileOf('hooks.mjs')
    await writeFile(hooks, "export default { authenticate: ({ username }) => username === 'me' }")
    const args = [
      'broker',
      '--port',
      '0',
      '--ws',
      '0',
      '--persist',
      fileOf('kept.jsonl'),
      '--hooks',
      hooks,
    ]
    const first = start(args)
    await first.said('/mqtt')
    await first.said('not for production')
    first.child.stdout.on('data', () => undefined)
    const urls: string[] = []
    first.child.kill('SIGINT')
    urls.push(...(await first.ended).out.trim().split('\n'))
    expect(urls.map((text) => text.slice(0, text.lastIndexOf(':')))).toEqual([
      'mqtt://127.0.0.1',
      'ws://127.0.0.1',
    ])
    const ports = [String(await freePort())]
    const fixed = [
      'broker',
      '--port',
      ports[0] ?? '',
      '--persist',
      fileOf('kept.jsonl'),
      '--hooks',
      hooks,
    ]
    const at = ['--url', `127.0.0.1:${ports[0]}`]
    const env = { MQWIRE_USERNAME: 'me' }
    for (const expected of ['', 'a (retained) kept\n']) {
      const running = start(fixed)
      await running.said('not for production')
      const read = await mqwire(['sub', ...at, '--retained-only', '--quiet-for', '200ms', '#'], {
        env,
      })
      expect(read).toEqual({ code: 0, out: expected, err: '' })
      expect((await mqwire(['pub', ...at, '-r', 'a', 'kept'], { env })).code).toBe(0)
      const refused = await mqwire(['pub', ...at, 'a', 'x'])
      expect(refused.code).toBe(3)
      expect(refused.err).toContain('--username')
      running.child.kill('SIGTERM')
      expect((await running.ended).code).toBe(130)
    }
  })
})

describe('where something stands still or is full', () => {
  /** A server that accepts CONNECT on 3.1.1 and answers nothing else. */
  const silent = async (): Promise<string[]> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.write(Uint8Array.of(0x20, 3, 0, 0, 0)))
    })
    servers.push(server)
    return ['--url', `mqtt://127.0.0.1:${await listening(server)}`]
  }
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  it('a time limit begins before the SUBACK', async () => {
    const { code, err } = await mqwire([
      'sub',
      ...(await silent()),
      '-n',
      '1',
      '--for',
      '300ms',
      'a',
    ])
    expect({ code, err }).toEqual({
      code: 4,
      err: 'mqwire: the broker did not answer the SUBSCRIBE in time\n',
    })
  })

  it.each([
    ['pub', ['a', 'x', '-q', '1']],
    ['replay', [fileOf('one.jsonl')]],
    ['doctor', ['--probe']],
  ])('%s ends at one Ctrl-C', async (command, args) => {
    await writeFile(
      fileOf('one.jsonl'),
      '{"time":"2026-01-01T00:00:00Z","topic":"a","qos":1,"payload":"x"}\n',
    )
    const running = start([command, ...(await silent()), '-v', ...args], { input: '' })
    await running.said(command === 'doctor' ? 'CONNACK' : 'connected')
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
  })

  it('a password is asked on a terminal only', async () => {
    const { code, err } = await mqwire(['pub', ...url, '--ask-password', 'a', 'x'])
    expect(code).toBe(1)
    expect(err).toContain('standard input is no terminal')
  })

  it('what a full disk did not take is not acknowledged', async () => {
    await broker.close()
    await serve({ maxQueuedMessages: 10 })
    const session = ['--client-id', 'r', '--no-clean-start', '--session-expiry', '60']
    expect(
      (await mqwire(['sub', ...url, ...session, '-q', '1', '--until-subscribed', 'a'])).code,
    ).toBe(0)
    broker.publish({ topic: 'a', payload: 'kept', qos: 1 })
    const full = await mqwire([
      'record',
      ...url,
      ...session,
      '-q',
      '1',
      'a',
      '/dev/full',
      '--append',
      '-n',
      '1',
    ])
    expect(full.code).toBe(5)
    expect(full.err).toContain('ENOSPC')
    const read = await mqwire(['sub', ...url, ...session, '-q', '1', '-n', '1', '--raw', 'a'])
    expect(read).toMatchObject({ code: 0, out: 'kept' })
  })

  it('a recording that did not begin leaves no file', async () => {
    const file = fileOf('none.jsonl')
    const none = ['--url', `mqtt://127.0.0.1:${await freePort()}`]
    expect((await mqwire(['record', ...none, 'a', file])).code).toBe(2)
    expect(existsSync(file)).toBe(false)
  })

  it('a refused filter leaves the file as it was', async () => {
    await broker.close()
    await serve({ authorizeSubscribe: () => 0x87 })
    const [old, none] = [fileOf('old.jsonl'), fileOf('never.jsonl')]
    await writeFile(old, 'kept\n')
    expect((await mqwire(['record', ...url, 'a', old, '--force'])).code).toBe(3)
    expect(await readFile(old, 'utf8')).toBe('kept\n')
    expect((await mqwire(['record', ...url, 'a', none])).code).toBe(3)
    expect(existsSync(none)).toBe(false)
  })

  it.each([
    ['await new Promise(() => {})', 'never ends'],
    ['throw null', 'null'],
    ["throw new Error('of the module')", 'of the module'],
  ])('a module that is %j is named', async (text, problem) => {
    const file = fileOf(`module-${problem.replaceAll(' ', '-')}.mjs`)
    await writeFile(file, text)
    const ends = await Promise.all([
      mqwire(['broker', '--port', '0', '--hooks', file]),
      mqwire(['sub', ...url, '--contract', file, 'a']),
    ])
    for (const { code, err } of ends) {
      expect(code).toBe(1)
      expect(err).toContain(file)
      expect(err).toContain(problem)
    }
  })

  it('a broker that goes away is not a refusal', async () => {
    const running = start(['bench', 'fan-out', ...url, '--subscribers', '2', '-d', '20s'])
    await expect.poll(() => broker.accepted.length).toBeGreaterThan(1)
    await broker.close()
    expect((await running.ended).code).toBe(2)
  })
})

describe('bench', () => {
  const bench = (...args: string[]) =>
    mqwire(['bench', args[0] ?? '', ...url, '--quiet', ...args.slice(1)])

  it('counts every message, over threads, and writes its reports', async () => {
    const [json, html] = [fileOf('bench.json'), fileOf('bench.html')]
    const load = [
      '--publishers',
      '4',
      '--subscribers',
      '6',
      '--topics',
      '2',
      '--rate',
      '50',
      '-d',
      '1s',
      '-q',
      '1',
    ]
    const first = await bench('stress', ...load, '--workers', '2', '--out', json, '--html', html)
    expect(first).toMatchObject({ code: 0, err: '' })
    expect(first.out).toMatch(/received +600 of 600, 100.0 %\nlost, twice, out of order +0, 0, 0\n/)
    expect(JSON.parse(await readFile(json, 'utf8'))).toMatchObject({
      sent: 200,
      received: 600,
      expected: 600,
      lost: 0,
    })
    expect(await readFile(html, 'utf8')).toContain('600 of 600')
    const again = await bench('stress', ...load, '--compare', json)
    expect(again.out).toMatch(/beside the earlier result:\nthroughput +\d+\.\d\d ×/)
    const connecting = await bench('connect', '--publishers', '20', '--json')
    expect(JSON.parse(connecting.out)).toMatchObject({ expected: 0, lost: 0 })
  })

  it('leaves no session and no will behind', async () => {
    const will = ['--will-topic', 'gone', '--will-payload', 'x', '--session-expiry', '300']
    const load = ['--publishers', '2', '--subscribers', '2', '--rate', '20', '-d', '300ms']
    expect((await bench('stress', ...load, ...will)).code).toBe(0)
    await expect.poll(() => broker.sessions.size).toBe(0)
    expect(broker.accepted.filter(({ topic }) => topic === 'gone')).toEqual([])
  })

  it('brings devices back after a storm, loses nothing, and leaves no session behind', async () => {
    for (const protocol of ['5', '4']) {
      const load = ['--devices', '10', '--storms', '1', '-d', '2s', '--rate', '5', '-q', '1']
      const { code, out, err } = await bench('devices', ...load, '--protocol', protocol)
      expect({ code, err }).toEqual({ code: 0, err: '' })
      expect(out).toMatch(/received +100 of 100, 100.0 %\nlost, twice, out of order +0, /)
      expect(out).toMatch(/commands +sent 2; received 2 of 2, 100.0 %/)
      expect(out).toMatch(
        /storm 1 +10 of 10 back; in ms: half [\d.]+, 99 % [\d.]+, all [\d.]+; 0 messages lost\n/,
      )
      await expect.poll(() => broker.sessions.size).toBe(0)
    }
  })

  it('names the first error of publishing, and an earlier result that is of another load', async () => {
    const file = fileOf('other.json')
    const load = ['--publishers', '2', '--subscribers', '2', '--rate', '20', '-d', '300ms']
    expect((await bench('stress', ...load, '--out', file)).out).toContain('for 0.3 s')
    const other = await bench('fan-out', ...load, '--compare', file)
    expect(other.code).toBe(1)
    expect(other.err).toContain('stress')
    const larger = await bench('stress', ...load, '--size', '999', '--compare', file)
    expect(larger.out).toContain('size 256, not 999')
    const unwritable = await bench('stress', ...load, '--out', '/not/there/x.json')
    expect(unwritable).toMatchObject({ code: 1, out: '' })
    await broker.close()
    await serve({ authorizePublish: () => 0x87 })
    const refused = await bench('stress', ...load, '-q', '1')
    expect(refused.code).toBe(3)
    expect(refused.err).toMatch(/not authorized/i)
    expect(refused.out).toMatch(/latency in ms +–\n/)
  })

  it('says what was lost', async () => {
    await broker.close()
    let count = 0
    await serve({ authorizeDelivery: () => count++ % 10 !== 0 })
    const { code, out, err } = await bench(
      'fan-in',
      '--publishers',
      '2',
      '--rate',
      '50',
      '-d',
      '1s',
    )
    expect(code).toBe(5)
    expect(out).toContain('90 of 100')
    expect(err).toContain('10 messages did not arrive')
  })
})

describe('decode', () => {
  it('shows a CONNECT field by field, and names the statement that a packet breaks', async () => {
    const connect = '10 0d 00 04 4d 51 54 54 05 02 00 3c 00 00 00'
    const valid = await mqwire(['decode'], { input: `\n${connect}\n\n` })
    expect(valid).toMatchObject({ code: 0, err: expect.stringContaining('client') })
    expect(valid.out).toContain('00 04 4d 51 54 54')
    expect(valid.out).toMatch(/Protocol Name: MQTT\n.*Protocol Version: 5\n.*Clean Start 1/)
    expect(valid.out).toMatch(/\n {2}ok\n$/)

    const reserved = '82070001000001 61c0'
    const text = await mqwire(['decode', '--from', 'client', '-'], { input: reserved })
    expect(text.code).toBe(3)
    expect(text.out).toContain('broken: reserved subscription options at byte 8 [MQTT-3.8.3-5]')
    const json = await mqwire(['decode', '--json', connect, reserved])
    expect(json.code).toBe(3)
    const [first, second] = json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(first).toMatchObject({ type: 'CONNECT', offset: 0, length: 15, valid: true })
    expect(second).toMatchObject({
      type: 'SUBSCRIBE',
      offset: 15,
      from: 'client',
      protocolVersion: 5,
      valid: false,
      error: { offset: 8, kind: 'malformed', statement: 'MQTT-3.8.3-5' },
    })
    expect(second.fields.at(-1)).toMatchObject({ offset: 8, statement: 'MQTT-3.8.3-5' })

    for (const input of ['', '0x1', 'zz'])
      expect(await mqwire(['decode'], { input })).toMatchObject({ code: 1, out: '' })
  })
})

describe('simulate', () => {
  const description = {
    name: 'lamps',
    devices: [
      {
        name: 'lamp',
        count: 2,
        state: { on: false },
        topics: [
          { topic: 'home/{id}/power', every: '50ms', payload: { watts: { $: 'counter' } } },
          { topic: 'home/{id}/state', on: 'change', qos: 1, retain: true, payload: '{on}' },
        ],
        commands: [{ topic: 'home/{id}/set', set: 'on' }],
        will: { topic: 'home/{id}/gone', payload: 'gone' },
      },
    ],
  }

  it('publishes as its devices, takes commands, and ends by Ctrl-C with DISCONNECT', async () => {
    await writeFile(fileOf('lamps.json'), JSON.stringify(description))
    const run = start(['simulate', fileOf('lamps.json'), ...url, '--prefix', 'p/'])
    const seen = (topic: string) =>
      broker.accepted.filter((each) => each.topic === topic).map(({ payload }) => text(payload))
    const text = (payload: Uint8Array): string => Buffer.from(payload).toString()
    await expect.poll(() => seen('p/home/lamp-2/power').length).toBeGreaterThan(2)
    expect([...broker.sessions.keys()].sort()).toEqual(['p/lamp-1', 'p/lamp-2'])
    expect(seen('p/home/lamp-1/power').slice(0, 2)).toEqual(['{"watts":0}', '{"watts":1}'])
    expect(seen('p/home/lamp-1/state')).toEqual(['false'])
    const answer = await mqwire(['request', ...url, 'p/home/lamp-1/set', 'true'])
    expect(answer).toMatchObject({ code: 0, out: '{"on":true}' })
    expect((await mqwire(['request', ...url, 'p/home/lamp-1/set', 'dark'])).code).toBe(3)
    expect([seen('p/home/lamp-1/state'), seen('p/home/lamp-2/state')]).toEqual([
      ['false', 'true'],
      ['false'],
    ])
    run.child.kill('SIGINT')
    const { code, out, err } = await run.ended
    expect({ code, out }).toEqual({ code: 130, out: '' })
    expect(err).toMatch(/^2 devices, \d+ messages published, 1 commands taken, 1 refused\n$/)
    expect(seen('p/home/lamp-1/gone')).toEqual([])
  })

  it('prints messages, lists the scenarios, and names them for an unknown one', async () => {
    const csv = { $: 'csv', file: 'levels.csv', column: 'level' }
    const tanks = { name: 'tank', topics: [{ topic: 'tank', rate: 10, payload: '{level}' }] }
    const devices = [{ ...tanks, values: { level: csv } }]
    await writeFile(fileOf('levels.csv'), 'level\n1.5\n2.5\n')
    await writeFile(fileOf('tanks.json'), JSON.stringify({ name: 'tanks', devices }))
    const print = await mqwire(['simulate', fileOf('tanks.json'), '--print', '--for', '300ms'])
    const records = print.out.trim().split('\n')
    expect(records.map((line) => JSON.parse(line).payload)).toEqual(['1.5', '2.5', '1.5'])
    const list = await mqwire(['simulate', '--list'])
    expect([...list.out.matchAll(/^\w+/gm)].join()).toBe('trucks,factory,home')
    expect(await mqwire(['simulate', 'nothing'])).toEqual({
      code: 1,
      out: '',
      err: "mqwire: there is no file and no scenario 'nothing'; give a file, or one of trucks, factory, home\n",
    })
    await writeFile(fileOf('wrong.json'), '{"name":"x","devices":[{"name":"a","topics":1}]}')
    const wrong = await mqwire(['simulate', fileOf('wrong.json')])
    expect(wrong.code).toBe(1)
    expect(wrong.err).toContain(
      'wrong.json: devices[0].topics: must be a list of 0 to 100; it is 1',
    )
  })
})

describe('exit codes', () => {
  it.each([
    ['an option that is not there', ['sub', '--jsn', 'a'], '--json'],
    ['a command that is not there', ['sbu', 'a'], 'sub'],
    ['a filter that is wrong', ['sub', 'a/#/b'], 'a/#/b'],
    ['a topic that is wrong', ['pub', 'a/+', 'x'], 'a/+'],
    ['a number that is wrong', ['sub', '-q', '3', 'a'], '0 to 2'],
    ['a time that is wrong', ['sub', '--for', 'soon', 'a'], '10s'],
    ['a code that is wrong', ['sub', '--format', '%k', 'a'], '%k'],
    ['a file that is not there', ['pub', 'a', '--file', '/not/there'], 'ENOENT'],
    ['too many payloads', ['pub', 'a', 'x', '--lines'], 'exclude'],
    ['two ways to print', ['sub', '--raw', '--format', '%p', 'a'], '--raw'],
    ['a contract that is not printed', ['sub', '--raw', '--contract', 'x.js', 'a'], '--contract'],
    ['half of a client certificate', ['sub', '--cert', bin, 'a'], '--key'],
    ['an option of another name', ['sub', '--no-clean-start', 'a'], '--client-id'],
  ])('1 for %s', async (_what, [command = '', ...args], text) => {
    const { code, out, err } = await mqwire([command, ...(command === 'sbu' ? [] : url), ...args])
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(text)
  })

  it('1 for a URL, 2 without a broker, each in one line that says what to do', async () => {
    const [wrong, none] = await Promise.all([
      mqwire(['pub', '--url', 'http://127.0.0.1', 'a', 'x']),
      mqwire(['pub', '--url', `mqtt://127.0.0.1:${await freePort()}`, 'a', 'x']),
    ])
    expect([wrong.code, none.code]).toEqual([1, 2])
    expect(none.err).toMatch(/^mqwire: .*ECONNREFUSED.*doctor.*\n$/)
  })

  it('3 for what the broker refuses, with its reason', async () => {
    await broker.close()
    await serve({ authorizePublish: () => 0x87, authorizeSubscribe: () => 0x87 })
    const [pub, sub] = await Promise.all([
      mqwire(['pub', ...url, '-q', '1', 'a', 'x']),
      mqwire(['sub', ...url, '--until-subscribed', 'a']),
    ])
    expect([pub.code, sub.code]).toEqual([3, 3])
    for (const { err } of [pub, sub]) expect(err).toMatch(/not authorized/i)
  })

  it('4 at a deadline, 130 by Ctrl-C, 0 where the reader of a pipe has enough', async () => {
    const late = mqwire(['sub', ...url, '-n', '1', '--for', '300ms', 'never'])
    const stopped = start(['sub', ...url, 'a'])
    await subscribed('a')
    stopped.child.kill('SIGINT')
    expect(await late).toEqual({ code: 4, out: '', err: 'mqwire: 0 of 1 messages came in time\n' })
    expect(await stopped.ended).toEqual({ code: 130, out: '', err: '' })
    const piped = new Promise<string>((resolve, reject) => {
      const line = `'${bin}' sub ${url.join(' ')} many | head -n 1`
      execFile('sh', ['-c', line], { timeout: 20_000 }, (error, out) =>
        error ? reject(error) : resolve(out),
      )
    })
    await subscribed('many')
    const again = setInterval(() => broker.publish({ topic: 'many', payload: 'x' }), 20)
    expect(await piped).toBe('many x\n')
    clearInterval(again)
  })

  it('takes options from the environment, and the password from a file', async () => {
    await broker.close()
    const seen: unknown[] = []
    await serve({
      authenticate: ({ clientId, username, password, keepAlive }) => {
        seen.push([clientId, username, Buffer.from(password ?? []).toString(), keepAlive])
        return true
      },
    })
    await writeFile(fileOf('password'), 'secret\n')
    const env = {
      MQWIRE_URL: url[1] ?? '',
      MQWIRE_CLIENT_ID: 'me',
      MQWIRE_KEEP_ALIVE: '7',
      MQWIRE_RETAIN: '0',
    }
    const safe = await mqwire(
      ['pub', '--username', 'u', '--password-file', fileOf('password'), 'a', 'x'],
      { env },
    )
    const shown = await mqwire(['pub', '--username', 'u', '--password', 'secret', 'a', 'x'], {
      env,
    })
    expect(seen).toEqual([
      ['me', 'u', 'secret', 7],
      ['me', 'u', 'secret', 7],
    ])
    expect(safe).toEqual({ code: 0, out: '', err: '' })
    expect(shown.err).toMatch(/list of processes/)
    expect(broker.accepted.map(({ retain }) => retain)).toEqual([false, false])
  })

  it('takes a profile, below the environment and the command line', async () => {
    await broker.close()
    const seen: unknown[] = []
    await serve({
      authenticate: ({ clientId, username, cleanStart }) =>
        seen.push([clientId, username, cleanStart]) > 0,
    })
    const env = { XDG_CONFIG_HOME: fileOf('config') }
    const run = (...args: string[]) => mqwire(args, { env })
    const add = ['profile', 'add', 'plant', ...url]
    expect((await run(...add, '--username', 'u', '--password', 'x')).err).toContain(
      '--password-file',
    )
    expect((await run(...add, '--protocol', '6')).code).toBe(1)
    await run(...add, '--username', 'u', '--client-id', 'kept', '--no-clean-start')
    await run('profile', 'add', 'other', '--url', 'mqtt://127.0.0.1:1')
    await run('pub', '--profile', 'plant', 'a', 'x')
    expect((await run('pub', '--profile', 'plnt', 'a', 'x')).err).toContain('plant, other')
    expect((await run('profile', 'use', 'plant')).code).toBe(0)
    expect((await run('profile', 'list')).out).toBe(
      `* plant  ${url[1]}  u\n  other  mqtt://127.0.0.1:1\n`,
    )
    await mqwire(['pub', '--username', 'c', 'a', 'x'], { env: { ...env, MQWIRE_CLIENT_ID: 'env' } })
    expect(seen).toEqual([
      ['kept', 'u', false],
      ['env', 'c', false],
    ])
    expect((await run('profile', 'remove', 'plant')).code).toBe(0)
    expect((await run('profile', 'list')).out).toBe('  other  mqtt://127.0.0.1:1\n')
    await writeFile(path.join(fileOf('config'), 'mqwire', 'profiles.json'), '[')
    expect(await run('pub', 'a', 'x')).toMatchObject({
      code: 1,
      err: expect.stringContaining('profiles.json'),
    })
  })

  it('a shell completes commands, options and choices', async () => {
    const completed = (line: string): Promise<string[]> =>
      new Promise((resolve, reject) => {
        const script = `PATH="${path.dirname(bin)}:$PATH"; source <(mqwire completion bash)
          COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _mqwire; echo "\${COMPREPLY[*]}"`
        execFile('bash', ['-c', script], (error, out) =>
          error ? reject(error) : resolve(out.trim().split(/\s+/)),
        )
      })
    const [commands, scenarios, options, choices] = await Promise.all([
      completed('mqwire re'),
      completed('mqwire bench fan'),
      completed('mqwire sub --qu'),
      completed("mqwire pub --protocol ''"),
    ])
    expect(commands).toEqual(['request', 'respond', 'record', 'replay'])
    expect(scenarios).toEqual(['fan-out', 'fan-in'])
    expect(options).toEqual(['--quiet-for', '--quiet'])
    expect(choices).toEqual(['5', '4', 'auto'])
  })

  it('0 for help, which teaches by examples', async () => {
    const { code, out } = await mqwire(['--help'])
    expect(code).toBe(0)
    const names = [...out.matchAll(/^ {2}(\w+) \[/gm)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(9)
    for (const help of await Promise.all(names.map((name) => mqwire([name, '--help'])))) {
      expect(help.code).toBe(0)
      expect(help.out).toContain('Examples:\n')
    }
  })
})
