/** Loads and simulated devices by the packed command: what is counted, and what stays on the broker. */
import { readFile, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { mqwire, start } from './program.js'
import { broker, fileOf, serve, url } from './setting.js'

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

describe('simulate', () => {
  const description = {
    name: 'lamps',
    devices: [
      {
        name: 'lamp',
        count: 2,
        state: { on: false },
        topics: [
          { topic: 'flat/{id}/power', every: '50ms', payload: { watts: { $: 'counter' } } },
          { topic: 'flat/{id}/state', on: 'change', qos: 1, retain: true, payload: '{on}' },
        ],
        commands: [{ topic: 'flat/{id}/set', set: 'on' }],
        will: { topic: 'flat/{id}/gone', payload: 'gone' },
      },
    ],
  }

  it('publishes as its devices, takes commands, and ends by Ctrl-C with DISCONNECT', async () => {
    await writeFile(fileOf('lamps.json'), JSON.stringify(description))
    const run = start(['simulate', fileOf('lamps.json'), ...url, '--prefix', 'p/'])
    const seen = (topic: string) =>
      broker.accepted.filter((each) => each.topic === topic).map(({ payload }) => text(payload))
    const text = (payload: Uint8Array): string => Buffer.from(payload).toString()
    await expect.poll(() => seen('p/flat/lamp-2/power').length).toBeGreaterThan(2)
    expect([...broker.sessions.keys()].sort()).toEqual(['p/lamp-1', 'p/lamp-2'])
    expect(seen('p/flat/lamp-1/power').slice(0, 2)).toEqual(['{"watts":0}', '{"watts":1}'])
    expect(seen('p/flat/lamp-1/state')).toEqual(['false'])
    const answer = await mqwire(['request', ...url, 'p/flat/lamp-1/set', 'true'])
    expect(answer).toMatchObject({ code: 0, out: '{"on":true}' })
    expect((await mqwire(['request', ...url, 'p/flat/lamp-1/set', 'dark'])).code).toBe(3)
    expect([seen('p/flat/lamp-1/state'), seen('p/flat/lamp-2/state')]).toEqual([
      ['false', 'true'],
      ['false'],
    ])
    run.child.kill('SIGINT')
    const { code, out, err } = await run.ended
    expect({ code, out }).toEqual({ code: 130, out: '' })
    expect(err).toMatch(/^2 devices, \d+ messages published, 1 commands taken, 1 refused\n$/)
    expect(seen('p/flat/lamp-1/gone')).toEqual([])
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
