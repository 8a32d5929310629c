/** What the dashboard remembers and offers, in Node: connections without passwords, JSON in pieces whose numbers can be chosen, and charts of a choice. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dashboard, message } from './dashboard.js'

const { piecesOf } = await dashboard('model/json-layout.js')
const { recentIn, remembered, limits } = await dashboard('model/recent.js')
const { pieces, render, isJson, jsonProblem } = await dashboard('model/payload.js')
const { Recorder } = await dashboard('model/recorder.js')
const { limits: seriesLimits } = await dashboard('model/series.js')

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const start = 1_700_000_000_000

describe('connections that were used', () => {
  const one = { url: 'ws://a:9001', filter: '#', qos: 1, username: 'ann' }

  it('are kept newest first, once each, and not too many', () => {
    let list = remembered([], one)
    list = remembered(list, { ...one, filter: 'x/#' })
    list = remembered(list, { ...one, qos: 2 })
    expect(list).toEqual([
      { ...one, qos: 2 },
      { ...one, filter: 'x/#' },
    ])
    for (let number = 0; number < 20; number += 1) list = remembered(list, { ...one, url: `ws://a:${number}` })
    expect(list).toHaveLength(limits.connections)
    expect(list[0]?.url).toBe('ws://a:19')
    expect(recentIn(JSON.stringify(list))).toEqual(list)
  })

  it('are kept without a password, whoever hands one in', () => {
    const text = JSON.stringify(remembered([], { ...one, url: 'ws://ann:canary@a:9001', password: 'canary' }))
    expect(text).not.toContain('canary')
    expect(JSON.stringify(recentIn(JSON.stringify([{ ...one, url: 'ws://x:canary@a', password: 'canary' }])))).not.toContain('canary')
  })

  it.each(['', 'null', '{}', '[1,null,{}]', '[{"url":1,"filter":"#","qos":1,"username":""}]', '[{"url":"a","filter":"#","qos":7,"username":""}]'])(
    'are none in %j',
    (text) => {
      expect(recentIn(text)).toEqual([])
    },
  )
})

describe('JSON in pieces', () => {
  it('is what JSON.stringify lays out, with each number alone and named by its path', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const made = piecesOf(value)
        expect(made.map(({ text }) => text).join('')).toBe(JSON.stringify(value, null, 2))
        for (const { text, field } of made) expect(field !== undefined).toBe(field !== undefined && Number.isFinite(Number(text)))
      }),
    )
    const fields = piecesOf({ a: { b: [1, 'x', 2.5] }, c: -3, d: '4' }).flatMap(({ text, field }) => (field === undefined ? [] : [[field, text]]))
    expect(fields).toEqual([
      ['a.b.0', '1'],
      ['a.b.2', '2.5'],
      ['c', '-3'],
    ])
  })

  it('is bounded, safe to show, and one piece where it is no JSON', () => {
    const many = bytes(JSON.stringify(Array.from({ length: 20_000 }, () => 7)))
    const { text } = render(many, 'json')
    const shown = pieces(many, 'json', text)
    expect(shown.reduce((sum, piece) => sum + piece.text.length, 0)).toBeLessThanOrEqual(65_536)
    expect(pieces(bytes('{"a'), 'json', '{"a')).toEqual([{ text: '{"a', field: undefined }])
    expect(pieces(bytes(' 21.5'), 'text', ' 21.5')).toEqual([{ text: ' 21.5', field: 'value' }])
    const odd = bytes(JSON.stringify({ 'a\u202e': 1 }))
    expect(
      pieces(odd, 'json', render(odd, 'json').text)
        .map((piece) => piece.text)
        .join(''),
    ).toBe('{\n  "a\\u{202e}": 1\n}')
  })

  it('says what is wrong with it, shown and sent', () => {
    expect(render(bytes('{"a":}'), 'json').note).toMatch(/^This is no JSON: Unexpected token/)
    expect(render(bytes('{"a":}'), 'text').note).toBe('')
    expect(render(bytes('{"a":}'), 'text', 'application/json').note).toMatch(/^The content type says JSON, but it is none: /)
    expect(render(bytes('{"a":1}'), 'text', 'application/json').note).toBe('')
    expect(['application/json', 'application/JSON; charset=utf-8', 'application/senml+json', 'text/plain', ''].map(isJson)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect([jsonProblem('1'), jsonProblem(' ')]).toEqual([undefined, 'it is empty'])
  })
})

describe('a chart of a number that was chosen', () => {
  it('has what is kept of the topic, and what comes', () => {
    const recorder = new Recorder()
    for (let tick = 0; tick < 4; tick += 1) {
      recorder.received([message('t', JSON.stringify({ heat: tick }))], start + 1000 * tick)
      recorder.tick(start + 1000 * tick + 250)
    }
    // As if another field had taken its place.
    ;(recorder.series.fields as Map<string, unknown>).clear()
    expect(recorder.chart('t', 'heat', [])).toBe(true)
    const series = recorder.series.fields.get('heat')?.series.get('t')
    expect(series?.values.filter((value) => typeof value === 'number')).toEqual([0, 1, 2, 3])
    recorder.received([message('t', '{"heat":9}')], start + 5000)
    recorder.tick(start + 5250)
    expect(series?.values.findLast((value) => value !== undefined)).toBe(9)
  })

  it('gets its place where all places are taken, but not those of the charts that are seen', () => {
    const recorder = new Recorder()
    for (let field = 0; field < seriesLimits.fields; field += 1) recorder.series.set('t', `f${field}`, field)
    for (let topic = 0; topic < seriesLimits.series; topic += 1) recorder.series.set(`t/${topic}`, 'f0', topic)
    recorder.series.commit(start)
    const last = `f${seriesLimits.fields - 1}`
    expect(recorder.chart('mine', 'new', [last])).toBe(true)
    expect([...recorder.series.fields.keys()]).toContain('new')
    expect([...recorder.series.fields.keys()]).toContain(last)
    expect(recorder.series.fields.size).toBe(seriesLimits.fields)
    expect(recorder.chart('mine', 'f0', [])).toBe(true)
    expect(recorder.series.fields.get('f0')?.series.has('mine')).toBe(true)
    expect(recorder.series.fields.get('f0')?.series.size).toBe(seriesLimits.series)
    expect(recorder.chart('t'.repeat(seriesLimits.topic + 1), 'f0', [])).toBe(false)
  })
})
