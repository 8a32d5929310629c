/**
 * The guide from MQTT.js: its programs compile and run, its tables have every option, method, property and event that MQTT.js declares and no other,
 * and what they say of mqwire exists in mqwire's types.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, compile, execute, fencesOf, filesOf } from './code-blocks.js'
import { removeProjects, requireDist, root } from './fixture.js'
import { claimsOf, deadLinks, rowsOf, wrongNames } from './guide-tables.js'
import { mqttjsNames } from './mqttjs-names.js'

const place = 'docs/from-mqttjs.md'
const guide = readFileSync(path.join(root, place), 'utf8')
const blocks = blocksOf(guide)
const mqttjs = mqttjsNames()

/** What the compiler finds wrong with the tables of a text. */
async function wrongClaims(text: string): Promise<string[]> {
  const claims = claimsOf(text)
  return claims.wrong(await compile({ 'claims.ts': claims.module }))
}

/** The guide with one thing changed, which must be there. */
function doctored(from: string, to: string, text = guide): string {
  expect(text).toContain(from)
  return text.replace(from, () => to)
}

beforeAll(requireDist)
afterAll(removeProjects)

describe('the guide from MQTT.js', () => {
  it('begins with the same program in both, and has only blocks that are checked', () => {
    expect(blocks[0]?.code).toContain("from 'mqtt'")
    expect(blocks[1]?.code).toContain("from 'mqwire'")
    expect(blocks.slice(0, 2).every(({ runs }) => runs)).toBe(true)
    const fences = guide.match(/^```\w.*$/gm) ?? []
    expect(fences).toEqual(fencesOf(guide))
    expect(fences).toHaveLength(blocks.length)
  })

  it('is for the MQTT.js that is installed', () => {
    const { version } = JSON.parse(
      readFileSync(path.join(root, 'node_modules/mqtt/package.json'), 'utf8'),
    ) as { version: string }
    expect(guide).toContain(`\`mqtt\` ${version.split('.').slice(0, 2).join('.')} from npm`)
  })

  it('has only blocks that compile', async () => {
    expect(await compile(filesOf(blocks), ['mqtt'])).toBe('')
  }, 60_000)

  for (const { line, code } of blocks.slice(2).filter((block) => block.runs)) {
    it(`runs the block at line ${line}`, async () => {
      expect(await execute(code)).toMatchObject({ code: 0 })
    }, 40_000)
  }

  it('shows two programs that print the same', async () => {
    const [theirs, ours] = await Promise.all(
      blocks.slice(0, 2).map(({ code }) => execute(code, ['mqtt'])),
    )
    expect(theirs).toEqual({ code: 0, output: 'rooms/7 warm' })
    expect(ours).toEqual(theirs)
  }, 40_000)

  it('has each option, method, property and event of MQTT.js, and none that it has not', () => {
    expect(wrongNames(guide, mqttjs)).toEqual([])
  })

  it('names nothing of mqwire that mqwire has not', async () => {
    expect(claimsOf(guide).count).toBeGreaterThan(250)
    expect(await wrongClaims(guide)).toEqual([])
  }, 60_000)

  it('has no dead links, and the README leads to it', () => {
    expect(deadLinks(guide)).toEqual([])
    const files = [...guide.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, file = '']) => file)
    expect(files.filter((file) => !existsSync(path.join(root, 'docs', file)))).toEqual([])
    expect(readFileSync(path.join(root, 'README.md'), 'utf8')).toContain(`](${place})`)
  })
})

describe('what is read from the declarations of MQTT.js', () => {
  it('has inherited options, fields of fields, accessors, statics, inherited methods, and nothing private', () => {
    const options = mqttjs.get('Options of connect')
    for (const name of ['clean', 'rejectUnauthorized', 'will.properties', 'servers.port'])
      expect(options).toContain(name)
    expect(mqttjs.get('The will')).toContain('willDelayInterval')
    expect(mqttjs.get('Properties of CONNECT')).toContain('receiveMaximum')
    for (const name of ['endAsync', 'defaultId', 'once'])
      expect(mqttjs.get('Methods')).toContain(name)
    for (const name of ['connected', 'keepalive', 'VERSION'])
      expect(mqttjs.get('Properties')).toContain(name)
    for (const name of ['_cleanUp', 'prototype', 'streamBuilder'])
      expect([...mqttjs.values()].some((names) => names.has(name))).toBe(false)
    expect([...(mqttjs.get('The module') ?? [])]).toEqual(
      expect.arrayContaining(['connectAsync', 'Store', 'ReasonCodes', 'default']),
    )
    expect(mqttjs.get('The module')).not.toContain('IClientOptions')
  })
})

describe('the guide tester', () => {
  it.each([
    ['Options of connect', 'subscribeBatchSize'],
    ['The will', 'willDelayInterval'],
    ['Options of publish', 'cbStorePut'],
    ['Options of unsubscribe', 'properties'],
    ['Methods', 'handleMessage'],
    ['Properties', 'serverProperties'],
    ['Events', 'outgoingEmpty'],
  ])('objects to a table of %s without %s', (heading, name) => {
    const line =
      rowsOf(guide).find((row) => row.heading === heading && row.names.includes(name))?.line ?? 0
    const without = guide.split('\n').filter((_, index) => index !== line - 1)
    expect(wrongNames(without.join('\n'), mqttjs)).toEqual([`${heading}: ${name} is missing`])
  })

  it('objects to names that MQTT.js has not, or that are there twice, to unknown tables, and to rows that say nothing', () => {
    expect(wrongNames(doctored('| `writeCache` |', '| `writeCash` |'), mqttjs)).toEqual([
      'Options of connect: writeCache is missing',
      'Options of connect: MQTT.js has no writeCash',
    ])
    expect(wrongNames(doctored('| `nl` |', '| `nl`, `rap` |'), mqttjs)).toEqual([
      'Options of subscribe: rap is there twice',
    ])
    expect(
      wrongNames(
        `${guide}\n## More\n\n| MQTT.js | mqwire | remarks |\n| --- | --- | --- |\n| \`x\` | none | y |\n`,
        mqttjs,
      ),
    ).toEqual(['More: unknown table with x'])
    expect(
      wrongNames(
        doctored('| `writeCache` | none | nothing to tune |', '| `writeCache` | none | |'),
        mqttjs,
      ),
    ).toEqual(['Options of connect: writeCache has no counterpart and no reason'])
    expect(wrongNames(doctored('| `rh` | `retainHandling` |', '| `rh` | |'), mqttjs)).toEqual([
      'Options of subscribe: rh has no counterpart and no reason',
    ])
    expect(deadLinks(doctored('](#stores)', '](#shops)'))).toEqual(['shops'])
  })

  it('objects to each option, value, method, field, event, code and module of mqwire that does not exist', async () => {
    const changes = [
      ['`maxFiltersPerSubscribe`', '`maxFilters`'],
      ['`endpoint.tls.alpn`', '`endpoint.tls.protocols`'],
      ["`resubscribe: 'when-lost'`", "`resubscribe: 'whenever'`"],
      ["`outbound.offline.qos0: 'queue'`", "`outbound.offline.qos3: 'queue'`"],
      ['`requireQos`', '`ttl`'],
      ['`client.drain()`', '`client.drane()`'],
      ['`client.clientId`', '`client.clientId()`'],
      ['`message.redelivered`', '`message.repeated`'],
      ["`client.on('dial')`", "`client.on('ring')`"],
      ["`client.state === 'closed'`", "`client.state === 'shut'`"],
      ['`client.reconnect({ force: true })`', '`client.reconnect({ now: true })`'],
      ['`ERR_KEEPALIVE_TIMEOUT`', '`ERR_KEEPALIVE`'],
      ['`mqwire/auth`', '`mqwire/login`'],
    ] as const
    const text = changes.reduce((changed, [from, to]) => doctored(from, to, changed), guide)
    const wrong = (await wrongClaims(text)).map((each) =>
      each.replace(/^line \d+: /, '`').concat('`'),
    )
    expect(wrong.sort()).toEqual(changes.map(([, to]) => to).sort())
  }, 60_000)
})
