import { describe, expect, it } from 'vitest'
import type { ClientOptions, CredentialsContext } from '../../../src/client/api/index.js'
import type { Properties } from '../../../src/wire/packets.js'
import { agreeable, failure } from './harness.js'
import { type Behaviour, causes, down, Rig, refusing } from './rig.js'

const departures = [
  ['9c', 0x9c],
  ['9d', 0x9d],
] as const

/** Connects to `a:1`, is sent away with this reference, and lets ten seconds pass. */
async function sentAway(
  reference: string,
  options: ClientOptions = {},
  hosts: readonly string[] = ['a:1'],
  then: (host: string) => Behaviour = () => agreeable,
): Promise<Rig> {
  const rig = await new Rig(options, { hosts }).up()
  rig.behave = then
  await rig.goodbye(0x9c, { serverReference: reference })
  await rig.advance(10_000)
  return rig
}

describe('Server Reference without an allow-list', () => {
  it.each(departures)('0x%s in DISCONNECT: told, not followed, no blind retry', async (_hex, code) => {
    const rig = await new Rig({}, { hosts: ['a:1'] }).up()
    await rig.goodbye(code, { serverReference: 'b:1' })
    expect(rig.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: code, properties: { serverReference: 'b:1' } } }])
    await rig.advance(1_000_000)
    expect(rig.hosts).toEqual(['a:1'])
    expect(await rig.client.closed).toMatchObject({ code: 'ERR_SERVER_DISCONNECT', reasonCode: code })
  })

  it.each(departures)('0x%s in CONNACK: not followed; a list moves on', async (_hex, code) => {
    const rig = new Rig({}, { hosts: ['a:1', 'c:1'] })
    rig.behave = (host) => (host === 'a:1' ? refusing(code, { serverReference: 'b:1' }) : agreeable)
    await rig.up()
    expect(rig.hosts).toEqual(['a:1', 'c:1'])
    await rig.finish()
  })

  it.each(departures)('0x%s: setBrokers in the event follows by the application’s own choice', async (_hex, code) => {
    const rig = await new Rig({}, { hosts: ['a:1'] }).up()
    rig.client.on('serverdisconnect', ({ packet }) => {
      const { serverReference } = packet.properties as Properties
      if (serverReference !== undefined) rig.client.setBrokers(rig.endpoint(serverReference))
    })
    await rig.goodbye(code, { serverReference: 'b:1' })
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['a:1', 'b:1'])
    await rig.finish()
  })
})

describe('Server Reference with an allow-list', () => {
  it('is not followed where the application chose another server in the event', async () => {
    const rig = await new Rig({ serverReferences: ['b:1'] }, { hosts: ['a:1'] }).up()
    rig.client.on('serverdisconnect', () => rig.client.setBrokers(rig.endpoint('c:1')))
    await rig.goodbye(0x9c, { serverReference: 'b:1' })
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['a:1', 'c:1'])
    await rig.finish()
  })

  it.each(departures)('0x%s in DISCONNECT to an allowed host is followed at once, with the session', async (_hex, code) => {
    const rig = await new Rig({ serverReferences: ['b:1'], clientId: 'c', cleanStart: false }, { hosts: ['a:1', 'c:1'] }).up()
    await rig.goodbye(code, { serverReference: 'b:1' })
    expect(rig.hosts).toEqual(['a:1', 'b:1'])
    expect(rig.client.state).toBe('connected')
    expect(rig.peer.last('connect')).toMatchObject({ clientId: 'c', cleanStart: false })
    await rig.finish()
  })

  it.each(departures)('0x%s in CONNACK is followed within the same connect()', async (_hex, code) => {
    const rig = new Rig({ serverReferences: ['b'] }, { hosts: ['a:1'] })
    rig.behave = (host) => (host === 'a:1' ? refusing(code, { serverReference: 'b:1' }) : agreeable)
    await rig.up()
    expect(rig.hosts).toEqual(['a:1', 'b:1'])
    expect(rig.seen('connecterror')).toMatchObject([{ endpoint: 'x://a:1', error: { reasonCode: code } }])
    await rig.finish()
  })

  it.each([
    ['another host', 'evil:1', ['b:1']],
    ['the metadata service', '169.254.169.254:80', ['b:1']],
    ['another port of an allowed host:port', 'b:22', ['b:1']],
    ['another port of an allowed host', 'b:22', ['b']],
    ['a name that ends like an allowed one', 'evil-b:1', ['b:1']],
    ['a name that begins like an allowed one', 'b:1.evil', ['b:1']],
    ['user-info before an allowed host', 'user@b:1', ['b:1']],
    ['a host that stands in user-info', 'b:1@evil:1', ['b:1']],
    ['a scheme of its own', 'mqtt://b:1', ['b:1']],
    ['nothing', '', ['b:1']],
    ['blanks', '   ', ['b:1']],
  ])('%s is not followed', async (_name, reference, serverReferences) => {
    const rig = await sentAway(reference, { serverReferences })
    expect(rig.hosts).toEqual(['a:1'])
    expect(rig.client.state).toBe('closed')
  })

  it('an entry without a port opens the port in use, no other', async () => {
    const rig = await sentAway('b:1', { serverReferences: ['b'] })
    expect(rig.hosts).toEqual(['a:1', 'b:1'])
    await rig.finish()
  })

  it('of several names the first allowed one', async () => {
    const rig = await sentAway('evil:1 c:1 b:1', { serverReferences: ['b:1', 'c:1'] })
    expect(rig.hosts).toEqual(['a:1', 'c:1'])
    await rig.finish()
  })

  it('at most three hops, then it is over', async () => {
    const names = ['b:1', 'c:1', 'd:1', 'e:1', 'f:1']
    const rig = new Rig({ serverReferences: names }, { hosts: ['a:1'] })
    rig.behave = (host) => refusing(0x9c, { serverReference: names[host === 'a:1' ? 0 : names.indexOf(host) + 1] ?? '' })
    const error = await Promise.all([failure(rig.client.connect()), rig.advance(10_000)]).then(([thrown]) => thrown)
    expect(rig.hosts).toEqual(['a:1', 'b:1', 'c:1', 'd:1'])
    expect(causes(error).at(-1)).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x9c })
  })

  it('two servers that send us to each other: no loop', async () => {
    const rig = new Rig({ serverReferences: ['a:1', 'b:1'], firstConnect: 'wait' }, { hosts: ['a:1'] })
    rig.behave = (host) => refusing(0x9d, { serverReference: host === 'a:1' ? 'b:1' : 'a:1' })
    failure(rig.client.connect())
    await rig.advance(600_000)
    expect(rig.dials.length).toBeLessThanOrEqual(5)
    expect(rig.client.state).toBe('closed')
  })

  it('two servers that take us in and send us to each other: no storm', async () => {
    const rig = await new Rig({ serverReferences: ['a:1', 'b:1'] }, { hosts: ['a:1'] }).up()
    for (let round = 0; round < 20 && rig.client.state === 'connected'; round++) {
      await rig.goodbye(0x9c, { serverReference: rig.hosts.at(-1) === 'a:1' ? 'b:1' : 'a:1' })
    }
    expect(rig.dials.length).toBeLessThanOrEqual(4)
    await rig.finish()
  })

  it('credentials are asked anew, for the host that we were sent to; TLS and path stay', async () => {
    const contexts: CredentialsContext[] = []
    const rig = await sentAway('b:1', {
      serverReferences: ['b:1'],
      credentials: (context) => {
        contexts.push(context)
        return { username: `user of ${context.endpoint}` }
      },
    })
    expect(contexts.map(({ endpoint }) => endpoint)).toEqual(['x://a:1', 'x://b:1'])
    expect(rig.peer.last('connect').username).toBe('user of x://b:1')
    await rig.finish()
  })

  it('when the host that we were sent to is down, the list gets its turn again, with back-off', async () => {
    const rig = await sentAway('b:1', { serverReferences: ['b:1'] }, ['a:1', 'c:1'], (host) => (host === 'b:1' ? down : agreeable))
    expect(rig.hosts.slice(0, 2)).toEqual(['a:1', 'b:1'])
    expect(['a:1', 'c:1']).toContain(rig.hosts[2])
    expect(rig.client.state).toBe('connected')
    await rig.finish()
  })

  it('a detour that leads nowhere takes nobody’s turn in the first round', async () => {
    const rig = new Rig({ serverReferences: ['x:1'] }, { hosts: ['a:1', 'b:1'] })
    rig.behave = (host) => (host === 'a:1' ? refusing(0x9c, { serverReference: 'x:1' }) : host === 'x:1' ? down : agreeable)
    const connecting = rig.client.connect().catch((error: unknown) => error)
    await rig.settle()
    expect(await connecting).toBeUndefined()
    expect(rig.hosts.slice(0, 2)).toEqual(['a:1', 'x:1'])
    expect(rig.hosts.at(-1)).toBe('b:1')
    await rig.finish()
  })

  it('what is on the wire elsewhere sends nobody anywhere: a reference in a CONNACK that accepts', async () => {
    const rig = new Rig({ serverReferences: ['b:1'] }, { hosts: ['a:1'] })
    rig.behave = () => (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { serverReference: 'b:1' } } : undefined
    await rig.up()
    await rig.advance(5000)
    expect(rig.client.negotiated?.serverReference).toBe('b:1')
    expect(rig.hosts).toEqual(['a:1'])
    await rig.finish()
  })

  it.each([5, 'b:1', [5], {}])('%j as allow-list is refused', (serverReferences) => {
    expect(() => new Rig({ serverReferences: serverReferences as string[] })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'serverReferences' }) as Error,
    )
  })
})
