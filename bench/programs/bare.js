/**
 * A bare socket in place of a client: it moves the same bytes and looks at none of them. What it takes is the limit of any client.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { threadId } from 'node:worker_threads'
import { WebSocket } from 'ws'
import { asking, hello, lengthOf, makeBlock, subscribeTo } from '../peers/stream.js'

const chunk = 1 << 16
let sockets = 0

const nextId = () => `limit-${process.pid}-${threadId}-${sockets++}`

/** A socket whose CONNECT was answered; `secure` are options of `tls.connect`. */
export async function openBare(port, secure) {
  const where = { port, host: '127.0.0.1' }
  const socket = secure === undefined ? connect(where) : connectTls({ ...where, ...secure })
  await once(socket, secure === undefined ? 'connect' : 'secureConnect')
  socket.setNoDelay(true)
  socket.write(hello(nextId()))
  await once(socket, 'data')
  return socket
}

/** The same over WebSocket: it has the names of a socket for what is used of it. */
async function openBareWebSocket(url) {
  const socket = new WebSocket(url, 'mqtt', { perMessageDeflate: false })
  await once(socket, 'open')
  socket.send(hello())
  await once(socket, 'message')
  return {
    on: (event, listener) => socket.on(event === 'data' ? 'message' : event, listener),
    write: (bytes) => socket.send(bytes),
    destroy: () => socket.terminate(),
  }
}

/** Reads as many PUBLISH as `receive.js` asks for, at QoS 0; with a `filter` of its own, those that another sends. */
export async function receiveBare(
  { url, port, secure, size, properties = 0, filter },
  count,
  timed,
) {
  const socket = await (url === undefined ? openBare(port, secure) : openBareWebSocket(url))
  const { subscribe, answered } = asking(count, size, properties, filter)
  let left = answered
  const time = await timed(
    () =>
      new Promise((resolve, reject) => {
        socket.on('data', ({ length }) => {
          left -= length
          if (left <= 0) resolve()
        })
        socket.on('close', () => reject(new Error(`${left} bytes are missing`)))
        socket.write(subscribe)
      }),
  )
  if (left !== 0) throw new Error(`${-left} bytes too many`)
  socket.destroy()
  return time
}

/** Writes as many PUBLISH as `send.js` does at QoS 0, and one at QoS 1 whose PUBACK ends it. */
export async function sendBare({ port, secure, size }, count, timed) {
  const socket = await openBare(port, secure)
  const { bytes, frame } = makeBlock(0, size, 0)
  const fence = Buffer.of(0x32, 9, 0, 4, 0x6c, 0x61, 0x73, 0x74, 0, 1, 0)
  const time = await timed(async () => {
    for (let left = count * frame, from = 0; left > 0; ) {
      const length = Math.min(left, chunk, bytes.length - from)
      if (!socket.write(bytes.subarray(from, from + length))) await once(socket, 'drain')
      left -= length
      from = (from + length) % bytes.length
    }
    const answer = once(socket, 'data')
    socket.write(fence)
    const [puback] = await answer
    if (puback[0] !== 0x40 || lengthOf(puback, 1).body === 0) throw new Error('no PUBACK')
  })
  socket.destroy()
  return time
}

/** One PUBLISH at a time: at QoS 0 until it comes back from the broker, at QoS 1 until its PUBACK. */
export async function pingPongBare({ port, size, qos }, count, timed) {
  const socket = await openBare(port)
  const topic = Buffer.from(`bare/${process.pid}/${sockets}`)
  if (qos === 0) {
    socket.write(subscribeTo(topic))
    await once(socket, 'data')
  }
  const body = [0, topic.length, ...topic, ...(qos > 0 ? [0, 1] : []), 0]
  const remaining = body.length + size
  const head = Buffer.of(0x30 | (qos << 1), (remaining & 127) | 128, remaining >> 7)
  const packet = Buffer.concat([head, Buffer.from(body), Buffer.alloc(size, 'x')])
  const time = await timed(
    () =>
      new Promise((resolve, reject) => {
        let left = count
        let missing = 0
        socket.on('data', (bytes) => {
          if (missing === 0) {
            const { body, length } = lengthOf(bytes, 1)
            missing = body + length
          }
          missing -= bytes.length
          if (missing > 0) return
          if (--left === 0) resolve()
          else socket.write(packet)
        })
        socket.on('close', () => reject(new Error(`${left} answers are missing`)))
        socket.write(packet)
      }),
  )
  socket.destroy()
  return time
}
