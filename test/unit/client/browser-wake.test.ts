/** The client for browsers finds out by itself that a page is back: on a network, on the screen, or from a freeze. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/browser.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable } from './harness.js'

/** A page, as far as its events go. */
function page() {
  const listeners = new Map<string, Set<(event: object) => void>>()
  const target = (name: string) => ({
    addEventListener: (type: string, listener: () => void) => {
      const key = `${name} ${type}`
      listeners.set(key, (listeners.get(key) ?? new Set()).add(listener))
    },
    removeEventListener: (type: string, listener: () => void) =>
      void listeners.get(`${name} ${type}`)?.delete(listener),
  })
  const document = { ...target('document'), visibilityState: 'visible' }
  const fire = (name: string, more: object = {}): void => {
    for (const listener of listeners.get(name) ?? [])
      listener({ type: name.split(' ')[1], ...more })
  }
  const count = () => [...listeners.values()].reduce((sum, { size }) => sum + size, 0)
  return { document, window: target('window'), fire, count }
}

let shown: ReturnType<typeof page>

beforeEach(() => {
  shown = page()
  vi.stubGlobal('document', shown.document)
  for (const [name, value] of Object.entries(shown.window)) vi.stubGlobal(name, value)
})
afterEach(() => vi.unstubAllGlobals())

async function connected(): Promise<{ client: Client; peer: ScriptedPeer }> {
  const [near, far] = memoryPair()
  const peer = new ScriptedPeer(far, 5, agreeable)
  const client = new Client({ url: 'mqtt://memory', transport: () => near }, { reconnect: false })
  await client.connect()
  return { client, peer }
}

it.each([
  ['window online', {}],
  ['window pageshow', { persisted: true }],
  ['document visibilitychange', {}],
  ['document resume', {}],
])('%s: the server is asked at once whether it is there', async (name, more) => {
  const { client, peer } = await connected()
  shown.fire(name, more)
  await vi.waitFor(() => expect(peer.all('pingreq')).toHaveLength(1))
  client.destroy()
})

it('a page that is shown for the first time, or is hidden, asks nothing; nor does one whose client is over listen', async () => {
  const { client, peer } = await connected()
  shown.fire('window pageshow', { persisted: false })
  shown.document.visibilityState = 'hidden'
  shown.fire('document visibilitychange')
  await client.publish('t', 'x', { qos: 1 })
  expect(peer.received.map(({ type }) => type)).toEqual(['connect', 'publish'])
  client.destroy()
  await client.closed
  expect(shown.count()).toBe(0)
})
