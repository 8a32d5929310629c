/**
 * Publishes as fast as a broker reads, without a client: prepared PUBLISH packets of QoS 0, or at QoS 1 with their acknowledgements counted.
 *
 * Started with an IPC channel; settings: `port`, `size`. A message `{ count }` starts a round, `'done'` answers when all was written.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { makeBlock } from '../peers/stream.js'
import { settings } from './rounds.js'

const { port, size = 256 } = settings
const { bytes, frame, count: perBlock } = makeBlock(0, size, 0)
const socket = connect({ port, host: '127.0.0.1', noDelay: true })
await once(socket, 'connect')
const id = Buffer.from(`flood-${process.pid}`)
socket.write(
  Buffer.concat([
    Buffer.of(0x10, 13 + id.length, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 0, 0, 0, id.length),
    id,
  ]),
)
await once(socket, 'data')
socket.on('data', () => undefined)
socket.on('error', () => process.exit(1))

process.on('disconnect', () => process.exit(0))
process.on('message', async ({ count }) => {
  for (let left = count; left > 0; ) {
    const now = Math.min(left, perBlock, 200)
    if (!socket.write(bytes.subarray(0, now * frame))) await once(socket, 'drain')
    left -= now
  }
  process.send('done')
})
process.send('ready')
