/** The gateway of the examples: its whole day at once, the program alone with a broker that is not there at first, and the count that must not be fooled. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/node.js'
import { eventually } from '../../real/waiting.js'
import { requireDist, root } from '../fixture.js'
import { exampleModule, Program } from './program.js'

beforeAll(requireDist)

/** A row of the table: measurements and pieces. */
function row(output: string, name: string): number[] {
  const found = new RegExp(`^${name} +([\\d,]+) +([\\d,]+)$`, 'm').exec(output)
  return found?.slice(1).map((text) => Number(text.replaceAll(',', ''))) ?? []
}

describe('npm run gateway', () => {
  it('loses nothing and counts no piece twice, through a day without network, two pulled plugs and a broker that comes and goes', async () => {
    const output = await new Program('gateway/main.js', ['--quick'], '', {}, 45_000).ends()
    const [measured = 0, counted = 0] = row(output, 'taken')
    expect([measured > 600, counted > 200, output]).toEqual([true, true, output])
    expect(row(output, 'lost')).toEqual([0, 0])
    expect(row(output, 'twice')[1]).toBe(0)
    const [arrived = 0, piecesArrived = 0] = row(output, 'delivered')
    expect([arrived >= measured, piecesArrived >= counted]).toEqual([true, true])
    expect(output.match(/^\d\d:\d\d {2}.*plug/gm)).toHaveLength(2)
    expect(output).toContain('Nothing that was taken is lost, and no piece was counted twice.')
  })

  it('stops at Ctrl-C, with the gateway', async () => {
    const program = new Program('gateway/main.js')
    await program.prints('The broker is restarted')
    await program.stop('SIGINT', 130)
  })
})

describe('examples/gateway/gateway.js', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'mqwire-gateway-test-'))
    return () => rm(folder, { recursive: true, force: true })
  })

  /** Starts it. `ended` is its exit code, `lines` are what it printed. */
  function gateway(url: string) {
    const file = path.join(root, 'examples', 'gateway', 'gateway.js')
    const child = spawn(process.execPath, [file, '--data', folder], {
      env: { ...process.env, MQTT_URL: url },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const said = { text: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.text += text
    })
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return {
      child,
      said,
      ended,
      feed: (...lines: string[]) => child.stdin.write(lines.map((line) => `${line}\n`).join('')),
    }
  }

  const readings = [
    '{"sensor":"oven","number":1,"celsius":181.5}',
    '{"sensor":"packer-1","number":1,"pieces":4}',
    '{"sensor":"oven","number":2,"celsius":182}',
  ]

  it('takes readings without a broker, is killed, stopped and started, and delivers them in order once there is one', async () => {
    const broker = new MemoryBroker()
    const first = await broker.serve({ tcp: 0 })
    const port = first.tcp?.port ?? 0
    const url = `mqtt://127.0.0.1:${port}`
    await first.close()
    const killed = gateway(url)
    killed.feed(readings[0] ?? '')
    await eventually(() => killed.said.text.includes('{"taken":["oven",1]}'), 'the first reading')
    killed.child.kill('SIGKILL')
    await killed.ended
    const stopped = gateway(url)
    stopped.feed(readings[1] ?? '', 'no reading')
    await eventually(
      () => stopped.said.text.includes('{"taken":["packer-1",1]}'),
      'the second reading',
    )
    stopped.child.kill('SIGTERM')
    expect(await stopped.ended).toBe(0)

    await broker.serve({ tcp: port })
    const reader = await connect(url, { clientId: 'reader' })
    const arrived: [string, number, string][] = []
    await reader.listen(
      'plant/#',
      (message) => void arrived.push([message.topic, message.qos, message.text()]),
      { qos: 2 },
    )
    const last = gateway(url)
    last.feed(readings[2] ?? '')
    last.child.stdin.end()
    // It ends by itself, once everything is delivered.
    expect(await last.ended).toBe(0)
    await eventually(() => arrived.length >= 3, 'three readings')
    const of = (topic: string) => arrived.filter(([each]) => each === topic)
    expect(of('plant/oven')).toEqual([0, 2].map((at) => ['plant/oven', 1, readings[at]]))
    expect(of('plant/packer-1')).toEqual([['plant/packer-1', 2, readings[1]]])
    await reader.disconnect()
    await broker.close()
  })

  it('ends with 1 when the broker turns it away for good', async () => {
    const broker = new MemoryBroker({ authenticate: () => 0x87 })
    const { urls } = await broker.serve({ tcp: 0 })
    const { ended } = gateway(urls[0] ?? '')
    expect(await ended).toBe(1)
    await broker.close()
  })
})

const { Tally, report } = await exampleModule('gateway/tally.js')

describe('the count of the gateway', () => {
  let tally = new Tally()
  beforeEach(() => {
    tally = new Tally()
    for (const sensor of ['oven', 'packer-1']) {
      tally.handleTaken([sensor, 1])
      tally.handleDelivered({ sensor, number: 1 })
    }
  })
  afterEach(() => expect(report(tally).includes('FAILED')).toBe(!tally.isFlawless))

  it.each<[string, boolean, () => void]>([
    ['all is well', true, () => undefined],
    [
      'a measurement twice is allowed',
      true,
      () => tally.handleDelivered({ sensor: 'oven', number: 1 }),
    ],
    ['a piece twice is not', false, () => tally.handleDelivered({ sensor: 'packer-1', number: 1 })],
    ['a lost measurement', false, () => tally.handleTaken(['oven', 2])],
    ['a lost piece', false, () => tally.handleTaken(['packer-1', 2])],
    ['one that was given up', false, () => tally.handleGivenUp()],
    [
      'more than was said to be taken',
      true,
      () => tally.handleDelivered({ sensor: 'oven', number: 2 }),
    ],
  ])('%s', (_what, flawless, happen) => {
    happen()
    expect(tally.isFlawless).toBe(flawless)
  })
})
