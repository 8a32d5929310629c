/** Servers of this machine for a test: ports that are free, servers that listen, and a folder behind a URL. Nothing of mqwire is used here. */
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import path from 'node:path'

/** Has a server listen at a port of this machine, or at any that is free; gives the port. */
export function listening(
  server: Pick<Server, 'once' | 'listen' | 'address'>,
  port = 0,
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Has a server stop listening. Fulfils when its last connection is gone. */
export function closed(server: Pick<Server, 'close'>): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()))
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(servers.map((server) => listening(server)))
  await Promise.all(servers.map(closed))
  return ports
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/** True when something accepts connections at this port or socket path. */
export function accepts(door: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof door === 'number' ? connect(door, '127.0.0.1') : connect(door)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}

/** Serves the files of a folder. `fileOf` finds the file of an address; `missing` is told of those that have none. */
export async function serveFolder(
  folder: string,
  fileOf: (address: string) => string = (address) =>
    path.join(folder, new URL(address, 'http://localhost').pathname),
  missing: (address: string) => void = () => undefined,
): Promise<{ readonly origin: string; stop(): void }> {
  const server = createHttpServer(async ({ url = '/' }, response) => {
    const file = fileOf(url)
    try {
      const body = await readFile(file)
      response
        .writeHead(200, { 'content-type': types[path.extname(file)] ?? 'application/octet-stream' })
        .end(body)
    } catch {
      missing(url)
      response.writeHead(404).end()
    }
  })
  return { origin: `http://127.0.0.1:${await listening(server)}`, stop: () => void server.close() }
}
