/**
 * Typed topics before the eyes of users' compilers, the oldest and the newest: what is right compiles, and what is wrong is told in a sentence.
 */
import path from 'node:path'
import ts from 'typescript-5.2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compilers,
  linkPeers,
  node,
  project,
  removeProjects,
  requireDist,
  writeFiles,
} from '../package/fixture.js'

beforeAll(requireDist)
afterAll(removeProjects)

const head = `
import type { BaseClient } from 'mqwire'
import { asyncapi } from 'mqwire/asyncapi'
import * as mq from 'mqwire/typed'
declare const client: BaseClient
declare const pack: (value: any) => Uint8Array
declare const unpack: (bytes: Uint8Array, options?: { start?: number; end?: number } | number) => any
declare const publisher: mq.Publisher
declare const requester: mq.Requester
const thermometer = mq.topic('plant/{line}/{device}/temperature')
const level = mq.channel('tank/{id}/{n:number}', mq.json<{ value: number }>())
const status = mq.channel('status', mq.text())
const setpoint = mq.operation('set/{id}', mq.number(), mq.json<{ was: number }>())
const start = mq.operation('pump/{id}/start')
const ask = mq.operation('pump/level', undefined, mq.number(), { qos: 1, timeout: 100, serve: { share: 'a', onError: 'reject' } })
const set = mq.operation('pump/set', mq.number())
const any = mq.operation('any', mq.json(), mq.json<any>())
const seek = mq.operation('seek/{id}', mq.number(), mq.text(), { qos: 1, errors: { NOT_FOUND: mq.json<{ id: string }>(), BUSY: undefined } })
const numbered = mq.operation('numbered', mq.text(), mq.text(), { errors: { 404: mq.number(), 503: undefined } })
declare const thrown: unknown
const anywhere = mq.channel('#', mq.number())
interface Shown { at: Date; seen?: Date[]; deep: { by: Map<string, Date>; readonly n: number | null }; big: [bigint] }
declare const dated: mq.StandardSchema<{ at: string }, { at: Date }>
const shown = mq.channel('shown', mq.json<Shown>())
const back = mq.channel('back', mq.json(dated, { encode: ({ at }) => ({ at: at.toISOString() }) }))
const there = mq.channel('there', mq.json(dated))
type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
const whole = mq.channel('whole', mq.json<Json>())
const part = mq.channel('part', mq.json<{ at: Date; more: Json }>())
const plant = mq.contract({ level, deep: { status, setpoint, start, ask, seek } })
const about = { info: { title: 'Plant', version: '1' } }
`

const right = `${head}
const name: string = thermometer.name({ line: 3, device: 'a' })
const some: string = thermometer.filter({ line: 3 }, { share: 'workers' })
const found: { line: string; device: string } | undefined = thermometer.match(name)
const text: string = some
const open: string = mq.topic(text as string).name({ whatever: 1 })
mq.topic('plain').name()
const rest: string | undefined = mq.topic('a/{rest...}').match(open)?.rest
const packed = mq.channel('packed', mq.codec<{ x: number }>({ encode: pack, decode: unpack, contentType: 'application/msgpack' }))
const sealed: mq.Codec<string> = mq.codec({ encode: async (value: string) => new Uint8Array(value.length), decode: async (bytes) => String(bytes) })
const pointed = mq.codec<number>({ encode: String, decode: ([x = 0], message) => x + message.topic.length })
async function use(): Promise<void> {
  await packed.on(client).publish({ x: 1 })
  await mq.channel('sealed', sealed).on(client).publish('x')
  await mq.channel('pointed', pointed).on(client).publish(1)
  await level.on(publisher).publish({ id: 'a', n: 1 }, { value: 1 }, { qos: 1 })
  for await (const { params, value, message } of await plant.on(client).level.subscribe([{ id: 'a' }, { n: 2 }], { qos: 1 })) {
    const n: number = params.n
    const v: number = value.value
    console.log(n, v, message.topic)
  }
  for await (const received of await status.on(client).subscribe({ onInvalid: 'deliver' })) {
    if (received.error !== undefined) console.log(received.error.issues)
    else console.log(received.value.length)
  }
  await status.on(client).listen(({ value }) => console.log(value.length))
  await level.on(client).listen({ id: 'a' }, ({ params }) => console.log(params.n.toFixed()), { onInvalid: ({ params }) => (params ? 'skip' : 'reject') })
  await plant.on(publisher).level.publish({ id: 'a', n: 1 }, { value: 1 })
  console.log((await plant.on(requester).deep.setpoint.call({ id: 'a' }, 4)).was.toFixed())
  const was: number = (await plant.on(client).deep.setpoint.call({ id: 'a' }, 4, { timeout: 100 })).was
  await setpoint.on(client).serve(async function* ({ value }) { yield { was: value } })
  await start.on(client).call({ id: 'a' }, { timeout: 100 })
  const asked: number = await ask.on(client).call()
  for await (const one of plant.on(client).deep.ask.stream({ window: 4 })) console.log(one.toFixed(), asked)
  await set.on(client).call(4, { qos: 1 })
  await any.on(client).call({ whatever: 1 })
  await start.on(client).serve(({ params, value }) => { const none: void = value; console.log(params.id, none) })
  await ask.on(client).serve(() => 1, { qos: 1 })
  await plant.on(requester).deep.start.call({ id: 1 })
  await seek.on(client).serve(({ params: { id } }) => { throw id === 'a' ? seek.error('BUSY', 'later') : plant.deep.seek.error('NOT_FOUND', { id }, 'no such thing') })
  const sought: string = await plant.on(client).deep.seek.call({ id: 1 }, 1)
  if (seek.isError(thrown)) {
    const code: 'NOT_FOUND' | 'BUSY' = thrown.reasonName
    if (thrown.reasonName === 'NOT_FOUND') console.log(thrown.data.id.length, thrown.code, code)
    else { const none: undefined = thrown.data; console.log(none) }
  }
  if (seek.isError(thrown, 'NOT_FOUND')) console.log(thrown.data.id.length, thrown.issues)
  if (numbered.isError(thrown, '404')) console.log(thrown.data.toFixed(), numbered.error('404', 7), numbered.error('503', 'busy'))
  const general: mq.Operation<'seek/{id}', number, number, string, string> = seek
  console.log(sought, general.errors['NOT_FOUND'])
  await shown.on(client).publish({ at: new Date(), deep: { by: new Map(), n: 1 }, big: [1n] })
  for await (const { value } of await shown.on(client).subscribe()) {
    const seen: string[] | undefined = value.seen
    const big: never = value.big[0]
    console.log(value.at.trim(), seen, value.deep.n?.toFixed(), big)
  }
  await back.on(client).publish({ at: new Date() })
  await there.on(client).publish({ at: '2026-01-02T03:04:05Z' })
  for await (const { value } of await back.on(client).subscribe()) console.log(value.at.getTime())
  for await (const { value } of await there.on(client).subscribe()) console.log(value.at.getTime())
  const same: mq.Codec<{ value: number; more?: [string, null] }> = mq.json<{ value: number; more?: [string, null] }>()
  const whatever: { length: number } = (await mq.channel('w', mq.json<any>()).on(client).latest().get('w')?.value).length
  console.log(same, whatever)
  for await (const { value } of await whole.on(client).subscribe()) {
    const again: Json = value
    await whole.on(client).publish({ again: [again, null] })
  }
  for await (const { value: { at, more } } of await part.on(client).subscribe()) {
    const json: Json = more
    console.log(at.trim(), json)
  }
  await anywhere.on(client).publish('a/b', 1, { qos: 1 })
  for await (const { value, message } of await anywhere.on(client).subscribe(['a/+', 'b/#'], { qos: 1 })) console.log(value.toFixed(), message.topic)
  await anywhere.on(client).listen('a/+', ({ value }) => value.toFixed())
  await anywhere.on(client).listen(({ value }) => value.toFixed())
  anywhere.on(client).latest('a/+', { limit: 5 })
  anywhere.on(client).subscription()
  const latest = level.on(client).latest({ id: 'a' }, { limit: 10 })
  const value: number | undefined = latest.get('x')?.value.value
  console.log(found, rest, was, value)
}
console.log(use)
const nested = mq.contract({ plant, one: { two: mq.contract({ ...plant, status }) }, none: {} })
for (const each of [plant, nested]) console.log(asyncapi(each, about), each.on(client))
asyncapi(nested, { ...about, role: { send: [level, 'plant.deep.status'], receive: [nested.one.two.status] } })
asyncapi({ level, deep: { plant, ask } } as const, about)
asyncapi({ ...plant, more: { status } }, about)
asyncapi(plant as object, about)
function written<Parts extends object>(parts: mq.Contract<Parts>): object { return asyncapi(parts as object, about) }
console.log(written(plant), nested.on(client).one.two.deep.ask.call())
interface Shared { readonly level: typeof level }
declare const shared: Shared
asyncapi(shared, about)
mq.contract({ shared, more: { shared } }).on(client)
`

/** The hooks of React, in whose types the same templates and codecs are found. */
const hooks = `${head}
import { useCall, useLatest, useLatestValues, useMessages, usePublish, useStream, useSubscription } from 'mqwire/react'
export function View(): number {
  const value: number | undefined = useLatestValues(level, { id: 'a' }, { select: (values) => values.get('x')?.value.value, enabled: true, limit: 5 })
  const all: number = useLatestValues(level, { select: ({ size }) => size })
  const texts: string[] = useLatestValues(status, { select: (values) => [...values.values()].map((entry) => entry.value), equal: (a, b) => a.join() === b.join() })
  const id: string | undefined = useLatestValues(level).get('x')?.params.id
  const last: string | undefined = useLatest('a', { enabled: false })?.text()
  const { messages, error, isPending } = useSubscription('a/#', { qos: 1, limit: 5 })
  const count: number = useMessages('a/#', { select: (all) => all.length })
  const n: number | undefined = useMessages(level, { id: 'a' }, { limit: 3 }).at(-1)?.params.n
  const v: number[] = useMessages(level, { select: (all) => all.map(({ value }) => value.value) })
  const lengths: number[] = useMessages(status).map(({ value }) => value.length)
  usePublish()('a', 'b', { qos: 1 })
  usePublish('a')('b', { qos: 1 })
  usePublish(level)({ id: 'a', n: 1 }, { value: 1 }, { qos: 1 })
  usePublish(level, { id: 'a', n: 1 })({ value: 1 })
  usePublish(status)('up')
  const asked = useCall(setpoint)
  const was: number | undefined = asked.data?.was
  const answer: Promise<{ was: number }> = asked.call({ id: 'a' }, 4, { timeout: 100 })
  useCall(setpoint, { id: 'a' }).call(4)
  const picked = useCall(setpoint, { id: 'a' }, 4, { select: ({ was }) => String(was), enabled: true, timeout: 100 })
  const picture: string | undefined = picked.data
  picked.call({ qos: 1 })
  useCall(setpoint, { enabled: false }).call({ id: 'a' }, 4)
  useCall(set).call(4)
  useCall(set, 4).call()
  const level1: number | undefined = useCall(ask, { enabled: true }).data
  useCall(ask).call()
  useCall(start, { id: 'a' }).call()
  useCall(start).call({ id: 'a' })
  const stream = useStream(ask, { limit: 5 })
  const sum: number = useMessages(anywhere, 'a/+', { limit: 3 }).length + useLatestValues(anywhere, 'b/#').size
  usePublish(anywhere)('a/b', sum)
  const sought = useCall(seek, { id: 'a' }, 1)
  if (seek.isError(sought.error, 'NOT_FOUND')) console.log(sought.error.data.id.length, sought.data?.length)
  useStream(seek, { id: 'a' }).stream(4)
  const values: readonly number[] = stream.data
  const mean: number = useStream(setpoint, { id: 'a' }, 4, { select: (all) => all.length, window: 4 }).data
  useStream(setpoint).stream({ id: 'a' }, 4)
  useStream(setpoint, { id: 'a' }).stream(4, { timeout: 100 })
  stream.stop()
  const rest = [value, texts, id, last, messages, error, isPending, v, lengths, was, answer, picture, level1, values, mean, n, count, picked.isPending, stream.isDone]
  return all + rest.length
}
`

const wrongHooks = [
  "useCall(setpoint).call({ id: 'a' }, '4')",
  "useCall(setpoint, { idd: 'a' }, 4)",
  "usePublish(level)({ id: 'a' }, { value: 1 })",
  'useCall(setpoint, { id: 1 }, 4, { select: (answer) => answer.is })',
  'useMessages(level, { select: (all) => all[0]?.value.valeu })',
  "useLatestValues(level, { idd: 'a' })",
  "useMessages(level, { idd: 'a' }, { limit: 5 })",
  "usePublish(level, { idd: 'a', n: 1 })",
  "useCall(setpoint, { idd: 'a' })",
  "useCall(setpoint, { id: 'a' }, '4')",
]

const wrong = `
thermometer.name({ line: '3' })
// Property 'device' is missing
thermometer.name({ line: '3', device: 'a', devcie: 'b' })
// 'devcie' does not exist
thermometer.filter({ lnie: 1 })
// 'lnie' does not exist
mq.topic('plain').name({})
// Expected 0 arguments, but got 1
level.topic.name({ id: 'a', n: 'b' })
// Type 'string' is not assignable to type 'number'
mq.topic('a/dev-{id}')
// A parameter is a whole level, as in a/{id}, and 'dev-{id}' is not.
mq.topic('a/+/b')
// A topic template has no wildcards: a parameter stands for one, and '+' does not.
mq.topic('a//b')
// A level of a topic template must not be empty.
mq.topic('a/{r...}/b')
// A parameter for the rest stands in the last place only, and '{r...}' does not.
mq.topic('a/{n:date}')
// A parameter is text or a number, as in {n:number}, and not 'date'.
mq.channel('a/#', mq.text())
// A topic template has no wildcards: a parameter stands for one, and '#' does not.
level.on(publisher).subscribe()
// Property 'subscribe' does not exist
level.on(client).publish({ id: 'a', n: 1 }, { value: '1' })
// Type 'string' is not assignable to type 'number'
status.on(client).publish({}, 'up')
// '{}' is not assignable to parameter of type 'string'
setpoint.on(client).call({ id: 'a' }, '4')
// Argument of type 'string' is not assignable to parameter of type 'number'
setpoint.on(client).serve(() => ({ wsa: 1 }))
// Type '{ wsa: number; }' is not assignable to type
level.on(client).subscribe({}, { onInvalid: 'ignore' })
// Type '"ignore"' is not assignable to type
mq.contract({ deep: { a: mq.number() } })
// A part is a channel, an operation, a contract, or a group of them by name.
asyncapi({ ...plant, deep: { a: client } }, about)
// A part is a channel, an operation, a contract, or a group of them by name.
const match = thermometer.match('x'); if (match) match.line = '3'
// Cannot assign to 'line' because it is a read-only property
mq.contract({ on: level })
// is not assignable to type
plant.on(publisher).deep.setpoint.call({ id: 'a' }, 4)
// Property 'call' does not exist on type 'object'
start.on(client).call({ id: 'a' }, 4)
// Type '4' has no properties in common with type 'CallOptions'
set.on(client).call()
// Expected 1-2 arguments, but got 0
ask.on(client).serve(() => 'a')
// 'string' is not assignable to type
mq.operation('a', undefined, undefined, { qos: 3 })
// Type '3' is not assignable to type 'QoS | undefined'
seek.error('NOT_FUOND', { id: 'a' })
// Argument of type '"NOT_FUOND"' is not assignable to parameter of type
seek.error('NOT_FOUND', { id: 1 })
// Type 'number' is not assignable to type 'string'
numbered.error('405')
// Argument of type '"405"' is not assignable to parameter of type
numbered.error('404', '7')
// Argument of type 'string' is not assignable to parameter of type 'number'
if (seek.isError(thrown, 'BUSY')) console.log(thrown.data.id)
// 'thrown.data' is possibly 'undefined'
if (set.isError(thrown)) console.log(thrown.reasonName)
// Property 'reasonName' does not exist on type 'never'
mq.operation('a', mq.text(), mq.text(), { errors: { A: 1 } })
// Type 'number' is not assignable to type
back.on(client).publish({ at: '2026-01-02T03:04:05Z' })
// Type 'string' is not assignable to type 'Date'
there.on(client).publish({ at: new Date() })
// Type 'Date' is not assignable to type 'string'
shown.on(client).listen(({ value }) => value.at.getTime())
// Property 'getTime' does not exist on type 'string'
mq.json(dated, { encode: ({ at }) => ({ at }) })
// Type 'Date' is not assignable to type 'string'
anywhere.on(client).publish(1)
// Expected 2-3 arguments, but got 1
anywhere.on(client).publish({ topic: 'a' }, 1)
// is not assignable to parameter of type 'string'
anywhere.on(client).subscribe([1])
// Type 'number' is not assignable to type 'string'
plant.on(client).depp
// Property 'depp' does not exist
`.trim()

const settings = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'esnext.disposable'],
  types: [] as string[],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  module: 'nodenext',
  moduleResolution: 'nodenext',
}

async function compile(folder: string, compiler: string): Promise<string> {
  await writeFiles(folder, {
    'tsconfig.json': JSON.stringify({ compilerOptions: settings, include: ['*.ts'] }),
  })
  return (await node([compiler, '-p', folder], folder)).output
}

describe.each(compilers)('with TypeScript %s', (_, compiler) => {
  it('what is right compiles', async () => {
    expect(await compile(await project({ 'right.ts': right }), compiler)).toBe('')
  })

  it('the hooks of React find the types of a contract', async () => {
    const begin =
      "\nimport { useCall, useLatestValues, useMessages, usePublish } from 'mqwire/react'\n"
    const folder = await project({
      'hooks.ts': hooks,
      'wrong.ts': `${head}${begin}${wrongHooks.join('\n')}\n`,
    })
    await linkPeers(folder)
    const said = await compile(folder, compiler)
    expect(said.split('\n').filter((line) => line.startsWith('hooks.ts'))).toEqual([])
    const at = `${head}${begin}`.split('\n').length
    const found = new Set(
      [...said.matchAll(/^wrong\.ts\((\d+),/gm)].map(([, line]) => wrongHooks[Number(line) - at]),
    )
    expect([...found].sort()).toEqual([...wrongHooks].sort())
  })

  it('what is wrong is explained in a sentence, each at its line and nothing else', async () => {
    const said = await compile(await project({ 'wrong.ts': `${head}${wrong}\n` }), compiler)
    const found = new Map<number, string>()
    let at = 0
    for (const line of said.split('\n')) {
      at = Number(/^wrong\.ts\((\d+),/.exec(line)?.[1] ?? at)
      found.set(at, `${found.get(at) ?? ''}${line}\n`)
    }
    const first = head.split('\n').length
    const lines = wrong.split('\n')
    const codes = lines.flatMap((line, index) => (line.startsWith('// ') ? [] : [index]))
    for (const index of codes)
      expect(found.get(first + index) ?? 'nothing', lines[index]).toContain(
        lines[index + 1]?.slice(3),
      )
    expect([...found.keys()].sort((one, other) => one - other)).toEqual(
      codes.map((index) => first + index),
    )
  })
})

describe('in an editor', () => {
  /** By line: what is asked at `|`, and what is shown: names in a completion, the end of a hover. */
  const lines: readonly (readonly [code: string, shown: readonly string[] | string])[] = [
    ['level.on(client).publish({ | })', ['id', 'n']],
    ["level.on(client).publish({ id: 'a', | })", ['n']],
    ['plant.on(client).deep.seek.call({ | })', ['id']],
    ["seek.error('|')", ['BUSY', 'NOT_FOUND']],
    ["plant.deep.seek.isError(thrown, '|')", ['BUSY', 'NOT_FOUND']],
    ['plant.on(client).deep.|', ['ask', 'seek', 'setpoint', 'start', 'status']],
    ['thermometer.filter({ | })', ['device', 'line']],
    ["mq.channel('a', mq.text(), { | })", ['onInvalid', 'publish', 'qos', 'retain', 'subscribe']],
    ['plant.on(client).level.listen((received) => received.val|ue)', 'value: { value: number; }'],
    [
      'level.on(client).listen({}, ({ par|ams }) => params)',
      'params: { readonly id: string; readonly n: number; }',
    ],
    ['seek.on(client).serve((received) => String(received.val|ue))', 'value: number'],
    ['start.on(client).serve(({ params }) => console.log(params.i|d))', 'id: string'],
  ]

  it('parameters, codes and parts are completed, and values shown as they are', async () => {
    const connecting = "connect('mqtt://here', { | })"
    const all = [...lines.map(([line]) => line), connecting].map(
      (line) => `${line.replace('|', '')};\n`,
    )
    const text = `import { connect } from 'mqwire'${head}${all.join('')}`
    const folder = await project({ 'asked.ts': text })
    const file = path.join(folder, 'asked.ts')
    const service = ts.createLanguageService({
      getCompilationSettings: () => ts.convertCompilerOptionsFromJson(settings, folder).options,
      getScriptFileNames: () => [file],
      getScriptVersion: () => '1',
      getScriptSnapshot: (name) => {
        const read = ts.sys.readFile(name)
        return read === undefined ? undefined : ts.ScriptSnapshot.fromString(read)
      },
      getCurrentDirectory: () => folder,
      getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
      fileExists: ts.sys.fileExists,
      readFile: ts.sys.readFile,
      directoryExists: ts.sys.directoryExists,
    })
    /** Where `|` stands in a line. */
    const placeOf = (line: string): number =>
      text.indexOf(`\n${line.replace('|', '')};`) + 1 + line.indexOf('|')
    const completed = (line: string): string[] =>
      (service.getCompletionsAtPosition(file, placeOf(line), {})?.entries ?? [])
        .map(({ name }) => name)
        .sort()
    const hovered = (line: string): string =>
      ts
        .displayPartsToString(service.getQuickInfoAtPosition(file, placeOf(line))?.displayParts)
        .replaceAll(/\s+/g, ' ')
    const found = lines.map(([line, shown]) => [
      line,
      typeof shown === 'string' ? hovered(line).slice(-shown.length) : completed(line),
    ])
    expect(found).toEqual(lines)
    const options = completed(connecting)
    expect(options).toEqual(
      expect.arrayContaining([
        'clientId',
        'keepAlive',
        'password',
        'reconnect',
        'username',
        'will',
      ]),
    )
    expect(options).not.toContain('console')
  })
})
