/** The bad link is as bad as it is told to be: so many bytes a second, stalls, cuts, half-closed ends, a peer that does not read. */
import { createServer, type Socket, connect as tcp } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { listening } from '../../support/servers.js'
import { eventually } from '../waiting.js'
import { ShapedLink } from './shaped-link.js'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Ends {
  readonly link: ShapedLink
  readonly client: Socket
  readonly server: Socket
  readonly got: {
    client: number
    server: number
    clientEnded: boolean
    serverEnded: boolean
    clientError: string
  }
}

async function open(
  shape: { up?: number; down?: number } = {},
  prepare: (link: ShapedLink) => void = () => undefined,
): Promise<Ends> {
  const listener = createServer({ allowHalfOpen: true })
  const port = await listening(listener)
  ends.push(() => listener.close())
  const link = await ShapedLink.start({ port, ...shape })
  ends.push(() => link.stop())
  prepare(link)
  const accepted = new Promise<Socket>((resolve) => listener.once('connection', resolve))
  const client = tcp({ port: link.port, host: '127.0.0.1', allowHalfOpen: true })
  const server = await accepted
  ends.push(
    () => client.destroy(),
    () => server.destroy(),
  )
  const got = { client: 0, server: 0, clientEnded: false, serverEnded: false, clientError: '' }
  client.on('data', (chunk) => {
    got.client += chunk.length
  })
  server.on('data', (chunk) => {
    got.server += chunk.length
  })
  client.on('end', () => {
    got.clientEnded = true
  })
  server.on('end', () => {
    got.serverEnded = true
  })
  client.on('error', (error: NodeJS.ErrnoException) => {
    got.clientError = error.code ?? ''
  })
  server.on('error', () => undefined)
  return { link, client, server, got }
}

describe('a shaped link', () => {
  it('forwards at once, both ways, when nothing is asked of it', async () => {
    const { client, server, got } = await open()
    client.write(Buffer.alloc(300_000))
    server.write(Buffer.alloc(200_000))
    await eventually(() => got.server === 300_000 && got.client === 200_000, 'all bytes')
  })

  it('carries so many bytes a second in one direction, and as many as there are in the other', async () => {
    const { client, server, got } = await open({ up: 500_000 })
    const began = performance.now()
    client.write(Buffer.alloc(250_000))
    server.write(Buffer.alloc(250_000))
    await eventually(() => got.client === 250_000, 'what is not shaped')
    const [fast, early] = [performance.now() - began, got.server]
    await eventually(() => got.server === 250_000, 'what is shaped')
    expect(early).toBeLessThan(Math.max(100_000, 500 * fast * 1.5))
    // Half a second; a busy machine makes it longer, nothing makes it shorter but what it may carry at once.
    expect(performance.now() - began).toBeGreaterThan(420)
  })

  it('carries nothing while stalled, and everything afterwards', async () => {
    const { link, client, got } = await open()
    link.stall()
    client.write(Buffer.alloc(10_000))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(got.server).toBe(0)
    link.goOn()
    await eventually(() => got.server === 10_000, 'what was held')
  })

  it('makes the sender feel it: what cannot be carried is not taken in without end', async () => {
    const { link, client } = await open({}, (made) => made.stall())
    const size = 64_000_000
    client.write(Buffer.alloc(size))
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(client.writableLength).toBeGreaterThan(size / 2)
    expect(link.carried.up).toBe(0)
  })

  it('resets both sides when it is cut', async () => {
    const { link, client, got } = await open()
    client.write('x')
    await eventually(() => got.server === 1, 'the link')
    link.cut()
    await eventually(() => client.destroyed, 'the end')
    expect(got.clientError).toBe('ECONNRESET')
    expect(link.cuts).toBe(1)
  })

  it('passes on the end of one side and keeps the other open', async () => {
    const { client, server, got } = await open()
    client.end('goodbye')
    await eventually(() => got.serverEnded, 'the end')
    expect(got.server).toBe(7)
    server.write('still here')
    await eventually(() => got.client === 10, 'the other direction')
    server.end()
    await eventually(() => got.clientEnded, 'the other end')
  })

  it('cuts doomed connections soon after the first byte from the broker, and lets nothing more of it through when it is mute', async () => {
    const { link, client, server, got } = await open({}, (made) =>
      made.doom({ after: 50, times: 1, mute: true }),
    )
    server.write('CONNACK')
    await eventually(() => got.client === 7, 'the first bytes')
    server.write('and more')
    await eventually(() => client.destroyed, 'the cut')
    expect(got.client).toBe(7)
    expect(link.doomed).toBe(0)
  })
})
