/** The programs of the README as somebody pastes them, and each broken in a way in which people break them. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { transform } from 'esbuild'
import { blocksOf } from '../code-blocks.js'
import { root } from '../fixture.js'

type Change = readonly [title: string, from: string, to: string]

export interface Program {
  readonly title: string
  readonly code: string
}

const blocks = blocksOf(readFileSync(path.join(root, 'README.md'), 'utf8'))

function block(marked: string): string {
  const found = blocks.find(({ code }) => code.includes(marked))
  if (found === undefined) throw new Error(`no program of the README has ${marked}`)
  return found.code
}

const url = "'mqtt://127.0.0.1:1883'"

const service: readonly Change[] = [
  ['as it is', url, url],
  ['{ keepalive: 60 }', "clientId: 'orders-1',", "clientId: 'orders-1',\n  keepalive: 60,"],
  ['{ clientID }', 'clientId:', 'clientID:'],
  ['{ reconnect: 1000 }', "clientId: 'orders-1',", "clientId: 'orders-1',\n  reconnect: 1000,"],
  ['no clientId', "clientId: 'orders-1',", ''],
  ['wrong port', url, "'mqtt://127.0.0.1:1999'"],
  ['listen() without a filter', "'orders/+/created',\n", ''],
]

const device: readonly Change[] = [
  ['as it is', url, url],
  [
    'will properties on 3.1.1',
    'retain: true },\n}',
    'retain: true, properties: { willDelayInterval: 5 } },\n  protocolVersion: 4,\n}',
  ],
  ['a will with a message', "payload: 'gone'", "message: 'gone'"],
  ['post to a wildcard', "post('pumps/17/pressure'", "post('pumps/+/pressure'"],
  [
    'not awaited',
    "  await client.publish('pumps/17/report', 'all well', { qos: 2,",
    "  client.publish('pumps/+/report', 'all well', { qos: 2,",
  ],
]

const there = "'ws://127.0.0.1:8083/mqtt'"
const page: readonly Change[] = [
  ['mqtt: in a page', there, "'mqtt://broker.example'"],
  ['wrong port', there, "'ws://127.0.0.1:1999/mqtt'"],
  ['all brokers dead', there, "['ws://127.0.0.1:1999/mqtt', 'ws://127.0.0.1:1998/mqtt']"],
  ['wrong password', `${there}, {`, "'ws://127.0.0.1:8084/mqtt', { clientId: 'refused-134',"],
]

function broken(name: string, code: string, changes: readonly Change[]): Promise<Program>[] {
  return changes.map(async ([title, from, to]) => {
    if (!code.includes(from)) throw new Error(`${name} has no ${from}`)
    const changed = await transform(
      code.replace(from, () => to),
      { loader: 'ts', format: 'esm', target: 'es2022' },
    )
    return { title: `${name}: ${title}`, code: changed.code }
  })
}

export const inNode = (): Promise<Program[]> =>
  Promise.all([
    ...broken('the service', block("clientId: 'orders-1'"), service),
    ...broken('the device', block("clientId: 'pump-17'"), device),
  ])

export const inPage = (): Promise<Program[]> =>
  Promise.all(
    broken(
      'the page',
      block('document.title = state').replace("'wss://broker.example/mqtt'", there),
      page,
    ),
  )
