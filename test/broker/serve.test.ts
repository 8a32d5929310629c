/** One call for listeners: addresses, TLS, failures, and what closing frees. Over real sockets. */
import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { createServer, connect as dialSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { connect } from '../../src/client/node.js'
import { MemoryBroker as PortableBroker } from '../../src/testing/index.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { within } from '../real/waiting.js'

const brokers: MemoryBroker[] = []

function broker(...options: ConstructorParameters<typeof MemoryBroker>): MemoryBroker {
  const made = new MemoryBroker(...options)
  brokers.push(made)
  return made
}

afterEach(async () => {
  for (const made of brokers.splice(0)) await made.close()
})

/** Whether something else can listen there. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const outcome = once(server.listen(port, '127.0.0.1'), 'listening').then(
    () => true,
    () => false,
  )
  const free = await outcome
  if (free) await new Promise((resolve) => server.close(resolve))
  return free
}

describe('serve', () => {
  it('listens on TCP, WebSocket and a Unix domain socket, says where, and tells from where clients come', async () => {
    const made = broker()
    const path = join(mkdtempSync(join(tmpdir(), 'mqwire-serve-')), 'mqtt.sock')
    const served = await made.serve({ tcp: 0, ws: { port: 0, path: '/here' }, unix: path })
    expect(served.urls).toEqual([`mqtt://127.0.0.1:${served.tcp?.port}`, `ws://127.0.0.1:${served.ws?.port}/here`, `unix://${path}`])
    expect([served.tcp?.url, served.ws?.url, served.unix?.url]).toEqual(served.urls)
    expect(served.unix?.port).toBeUndefined()
    const clients = await Promise.all(served.urls.map((url, index) => connect(url, { clientId: `c${index}` })))
    const remotes = ['c0', 'c1', 'c2'].map((clientId) => made.clients.get(clientId)?.remote)
    expect(remotes).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+$/), expect.stringMatching(/^127\.0\.0\.1:\d+$/), undefined])
    await Promise.all(clients.map((client) => client.disconnect()))
    await made.close()
    expect(existsSync(path)).toBe(false)
  })

  it('authenticate hears from where a client comes', async () => {
    const seen: unknown[] = []
    const made = broker({ authenticate: (_connect, context) => seen.push(context) > 0 })
    const { urls } = await made.serve({ tcp: 0, ws: 0 })
    for (const url of urls) await (await connect(url)).disconnect()
    expect(seen).toEqual([{ remote: expect.stringMatching(/^127\.0\.0\.1:\d+$/) }, { remote: expect.stringMatching(/^127\.0\.0\.1:\d+$/) }])
  })

  it('close says goodbye, closes the listeners and frees their ports', async () => {
    const made = broker()
    const { tcp, ws } = await made.serve({ tcp: 0, ws: 0 })
    const client = await connect(tcp?.url ?? '', { reconnect: false })
    const heard = new Promise((resolve) => client.on('serverdisconnect', ({ packet }) => resolve(packet.reasonCode)))
    await within(made.close(), 'close')
    expect(await within(heard, 'the goodbye')).toBe(0x8b)
    expect([await isFree(tcp?.port ?? 0), await isFree(ws?.port ?? 0)]).toEqual([true, true])
    await client.disconnect()
    await expect(made.serve({ tcp: 0 })).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await made.close()
  })

  it('close does not wait for a client that does not answer', async () => {
    const made = broker()
    const { tcp } = await made.serve({ tcp: 0 })
    const socket = dialSocket({ port: tcp?.port ?? 0, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    socket.write(Uint8Array.from([0x10, 0x0e, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 0, 0, 0, 1, 0x61]))
    await expect.poll(() => made.clients.size).toBe(1)
    socket.pause()
    const ended = once(socket, 'close').catch(() => undefined)
    await within(made.close(), 'close')
    expect(await isFree(tcp?.port ?? 0)).toBe(true)
    socket.destroy()
    await ended
  })

  it('listeners can be closed alone, and opened again on the same port', async () => {
    const made = broker()
    await made.serve({ ws: 0 })
    const first = await made.serve({ tcp: 0 })
    const port = first.tcp?.port ?? 0
    await first.close()
    await first.close()
    expect(await isFree(port)).toBe(true)
    const again = await made.serve({ tcp: { port } })
    expect(again.tcp?.port).toBe(port)
    await (await connect(again.urls[0] ?? '')).disconnect()
  })

  it('is a resource of a block, like the broker', async () => {
    const ports: number[] = []
    {
      await using made = new MemoryBroker()
      await using served = await made.serve({ tcp: 0 })
      ports.push(served.tcp?.port ?? 0)
      await made.serve({ ws: 0 }).then(({ ws }) => ports.push(ws?.port ?? 0))
    }
    expect(await Promise.all(ports.map(isFree))).toEqual([true, true])
  })

  it('opens nothing when one of them cannot be opened', async () => {
    const [one, other] = [broker(), broker()]
    const { tcp } = await one.serve({ tcp: 0 })
    const free = await other.serve({ tcp: 0 })
    const port = free.tcp?.port ?? 0
    await free.close()
    await expect(other.serve({ ws: port, tcp: tcp?.port ?? 0 })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(await isFree(port)).toBe(true)
  })

  it.each<[object, RegExp]>([
    [{}, /tcp, ws or unix/],
    [{ tpc: 1883 }, /'tpc' is unknown; did you mean 'tcp'/],
    [{ tcp: '1883' }, /tcp must be an object/],
    [{ tcp: -1 }, /tcp\.port must be an integer from 0 to 65535/],
    [{ tcp: { prot: 1 } }, /'prot' is unknown; did you mean 'port'/],
    [{ tcp: { path: '/' } }, /'path' is unknown/],
    [{ ws: { port: 1, path: 5 } }, /ws\.path must be a string/],
    [{ tcp: 0, host: 5 }, /host must be a string/],
    [{ unix: 5 }, /unix must be a string/],
  ])('checks what it is given: %j', async (options, message) => {
    await expect(broker().serve(options)).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', message: expect.stringMatching(message) })
  })

  it('is refused by name where there are no sockets', async () => {
    await expect(new PortableBroker().serve({ tcp: 0 })).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
  })
})
