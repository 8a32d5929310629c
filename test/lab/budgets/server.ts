/**
 * The process of the hostile server: listens on a port of its own, plays a scenario on every connection, and talks to the test by messages.
 *
 * It ends when the test's process does.
 */
import { createServer, type Socket } from 'node:net'
import { listening } from '../../support/servers.js'
import { shake } from './frames.js'
import { type Line, Link } from './link.js'
import type { Scenario } from './scenario.js'

/** Plays the server of a scenario until the process that started this one is gone. */
export function serve(scenario: Scenario): void {
  const steps: (() => void)[] = []
  let said = 0
  const line: Line = {
    go: (n) =>
      said >= n
        ? Promise.resolve()
        : new Promise((resolve) => steps.push(() => said >= n && resolve())),
    tell: (told) => void process.send?.(told),
  }
  process.on('message', () => {
    said += 1
    for (const step of steps) step()
  })
  process.on('disconnect', () => process.exit())
  let connections = 0
  const server = createServer({ noDelay: true }, (socket) => {
    connections += 1
    const number = connections
    socket.on('error', () => undefined)
    play(scenario, socket, number, line).catch((error: unknown) =>
      line.tell({ what: 'failed', error: String(error) }),
    )
  })
  listening(server).then((port) => line.tell({ what: 'listening', port }))
}

async function play(
  { way = 'tcp', peer }: Scenario,
  socket: Socket,
  number: number,
  line: Line,
): Promise<void> {
  if (peer === undefined) return
  if (way === 'ws') line.tell({ what: 'handshake', request: await shake(socket) })
  await peer(new Link(socket, number, way, line))
}
