import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { agreeable } from './harness.js'
import { type Behaviour, down, Rig, refusing, welcoming } from './rig.js'

const departures = [
  ['9c', 0x9c],
  ['9d', 0x9d],
] as const
const allowed = { serverReferences: ['b:1'] }

/** Host `a:1` refuses with this code and reference, the others do that. */
const away =
  (code: number, serverReference: string, then: (host: string) => Behaviour = () => agreeable) =>
  (host: string): Behaviour =>
    host === 'a:1' ? refusing(code, { serverReference }) : then(host)

/** Connects to `a:1`, is sent away with this reference, and lets ten seconds pass. */
async function sentAway(
  serverReference: string,
  options: ClientOptions,
  hosts = ['a:1'],
  code = 0x9c,
): Promise<Rig> {
  const rig = await new Rig(options, { hosts }).up()
  rig.behave = (host) => (host === 'b:1' && hosts.length > 1 ? down : agreeable)
  await rig.goodbye(code, { serverReference })
  await rig.advance(10_000)
  return rig
}

async function expectDials(rig: Rig, ...hosts: string[]): Promise<void> {
  expect(rig.hosts).toEqual(hosts)
  await rig.finish()
}

describe('Server Reference without an allow-list', () => {
  it.each(departures)('0x%s in DISCONNECT: not followed, no blind retry', async (_hex, code) => {
    const rig = await sentAway('b:1', {}, ['a:1'], code)
    expect(rig.seen('serverdisconnect')).toMatchObject([
      { packet: { reasonCode: code, properties: { serverReference: 'b:1' } } },
    ])
    await rig.advance(1_000_000)
    expect(await rig.client.closed).toMatchObject({
      code: 'ERR_SERVER_DISCONNECT',
      reasonCode: code,
    })
    await expectDials(rig, 'a:1')
  })

  it.each(departures)('0x%s in CONNACK: not followed; a list moves on', async (_hex, code) => {
    const rig = new Rig({}, { hosts: ['a:1', 'c:1'], behave: away(code, 'b:1') })
    await expectDials(await rig.up(), 'a:1', 'c:1')
  })
})

describe('Server Reference with an allow-list', () => {
  it.each([{}, allowed])('%j: the application chooses in the event', async (options) => {
    const rig = await new Rig(options, { hosts: ['a:1'] }).up()
    rig.client.on('serverdisconnect', () => rig.client.setBrokers(rig.endpoint('c:1')))
    await rig.goodbye(0x9c, { serverReference: 'b:1' })
    await rig.advance(1000)
    await expectDials(rig, 'a:1', 'c:1')
  })

  it.each(departures)('0x%s in DISCONNECT: followed, with the session', async (_hex, code) => {
    const rig = await new Rig(
      { ...allowed, clientId: 'c', cleanStart: false },
      { hosts: ['a:1', 'c:1'] },
    ).up()
    await rig.goodbye(code, { serverReference: 'b:1' })
    expect(rig.client.state).toBe('connected')
    expect(rig.peer.last('connect')).toMatchObject({ clientId: 'c', cleanStart: false })
    await expectDials(rig, 'a:1', 'b:1')
  })

  it.each(departures)('0x%s in CONNACK: followed within connect()', async (_hex, code) => {
    const rig = await new Rig(
      { serverReferences: ['b'] },
      { hosts: ['a:1'], behave: away(code, 'b:1') },
    ).up()
    expect(rig.seen('connecterror')).toMatchObject([
      { endpoint: 'x://a:1', error: { reasonCode: code } },
    ])
    await expectDials(rig, 'a:1', 'b:1')
  })

  it.each([
    ['another host', 'evil:1', 'b:1'],
    ['the metadata service', '169.254.169.254:80', 'b:1'],
    ['another port of an allowed host:port', 'b:22', 'b:1'],
    ['another port of an allowed host', 'b:22', 'b'],
    ['a name that ends like an allowed one', 'evil-b:1', 'b:1'],
    ['a name that begins like an allowed one', 'b:1.evil', 'b:1'],
    ['user-info before an allowed host', 'user@b:1', 'b:1'],
    ['a host that stands in user-info', 'b:1@evil:1', 'b:1'],
    ['a scheme of its own', 'mqtt://b:1', 'b:1'],
    ['nothing', '', 'b:1'],
    ['blanks', '   ', 'b:1'],
  ])('%s is not followed', async (_name, reference, entry) => {
    const rig = await sentAway(reference, { serverReferences: [entry] })
    expect(rig.client.state).toBe('closed')
    await expectDials(rig, 'a:1')
  })

  it.each([
    ['an entry without a port opens the port in use', 'b:1', ['b']],
    ['of several names the first allowed one is followed', 'evil:1 b:1 c:1', ['c:1', 'b:1']],
  ])('%s', async (_what, reference, serverReferences) => {
    await expectDials(await sentAway(reference, { serverReferences }), 'a:1', 'b:1')
  })

  it('credentials are asked for again, for the host that we were sent to', async () => {
    const credentials = ({ endpoint }: { endpoint: string }) => ({
      username: `user of ${endpoint}`,
    })
    const rig = await sentAway('b:1', { ...allowed, credentials })
    expect(rig.peers.map((peer) => peer.last('connect').username)).toEqual([
      'user of x://a:1',
      'user of x://b:1',
    ])
    await rig.finish()
  })

  it('a reference in a CONNACK that accepts is not followed', async () => {
    const behave = () => welcoming({ serverReference: 'b:1' })
    const rig = await new Rig(allowed, { hosts: ['a:1'], behave }).up()
    await rig.advance(5000)
    expect(rig.client.negotiated?.serverReference).toBe('b:1')
    await expectDials(rig, 'a:1')
  })

  it.each([5, 'b:1', [5], {}])('%j as allow-list is refused', (serverReferences) => {
    const refused = expect.objectContaining({
      code: 'ERR_INVALID_OPTION',
      option: 'serverReferences',
    }) as Error
    expect(() => new Rig({ serverReferences: serverReferences as string[] })).toThrow(refused)
  })
})
