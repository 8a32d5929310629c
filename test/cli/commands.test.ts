/** The commands as they are packed, against the broker in memory: what they print and do. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/servers.js'
import { mqwire, start } from './program.js'
import { broker, fileOf, serve, subscribed, url } from './setting.js'

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
