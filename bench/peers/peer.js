/**
 * `peer.c` once more, for machines without a C compiler: a server that answers, acknowledges, swallows, and streams prepared PUBLISH packets.
 *
 * A filter `N<count>/<size>[/<user properties>[/<rate>]]` asks for that many PUBLISH over 100 topics of 20 bytes, at the QoS of the filter, and not more of
 * them a second than the rate; a filter `X` ends all connections at once; the Receive Maximum of the CONNECT is kept. With a folder that has `key.pem` and `certificate.pem` it speaks TLS. For measurements only: it trusts its client. Prints its port, and ends when its standard input ends.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { connackOf, lengthOf, makeBlock, wishOf } from './stream.js'

const readSize = 1 << 20
const slice = 1 << 18
const blocks = new Map()
const sockets = new Set()

function blockFor(version, { qos, size, properties }) {
  const key = `${version}/${qos}/${size}/${properties}`
  const block = blocks.get(key) ?? makeBlock(qos, size, properties, version)
  blocks.set(key, block)
  return block
}

class Connection {
  #socket
  #version = 5
  #held = Buffer.alloc(0)
  #swallow = 0
  #answers = []
  #receiveMaximum = 65_535
  #block
  #wanted = 0
  #acknowledged = 0
  #sent = 0
  #full = false
  #rate = 0
  #since = 0
  #timer

  constructor(socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.on('drain', () => {
      this.#full = false
      this.#stream()
    })
    socket.on('data', (chunk) => this.#receive(chunk))
  }

  #receive(chunk) {
    let bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    let at = Math.min(this.#swallow, bytes.length)
    this.#swallow -= at
    for (;;) {
      const { body, length } = lengthOf(bytes, at + 1)
      if (body === 0) break
      const there = bytes.length - body
      const publish = bytes[at] >> 4 === 3
      if (there < length && !(publish && there >= 2 && there >= bytes.readUInt16BE(body) + 4)) break
      this.#packet(bytes[at], bytes, body, length)
      if (there < length) {
        this.#swallow = length - there
        at = bytes.length
      } else at = body + length
    }
    bytes = bytes.subarray(at)
    this.#held = bytes.length > 0 ? Buffer.from(bytes) : bytes
    this.#flush()
    this.#stream()
  }

  #packet(first, bytes, body, length) {
    switch (first >> 4) {
      case 1: {
        this.#version = bytes[body + 6]
        const { answer, receiveMaximum } = connackOf(bytes.subarray(body, body + length))
        this.#receiveMaximum = receiveMaximum
        this.#answers.push(answer)
        break
      }
      case 3: {
        const id = body + 2 + bytes.readUInt16BE(body)
        if ((first & 6) !== 0) this.#acknowledge((first & 2) !== 0 ? 0x40 : 0x50, bytes, id)
        break
      }
      case 4:
      case 7:
        this.#acknowledged++
        break
      case 5:
        this.#acknowledge(0x62, bytes, body)
        break
      case 6:
        this.#acknowledge(0x70, bytes, body)
        break
      case 8:
      case 10:
        this.#subscribe(first >> 4 === 8, bytes.subarray(body, body + length))
        break
      case 12:
        this.#answers.push(Buffer.of(0xd0, 0))
        break
      case 14:
        this.#socket.destroy()
    }
  }

  #acknowledge(first, bytes, id) {
    this.#answers.push(Buffer.of(first, 2, bytes[id], bytes[id + 1]))
  }

  #subscribe(subscribe, body) {
    const { codes, wish, all } = wishOf(body, subscribe, this.#version)
    if (all) for (const socket of sockets) socket.destroy()
    const rest = this.#version === 5 ? [0, ...codes] : subscribe ? codes : []
    this.#answers.push(
      Buffer.from([subscribe ? 0x90 : 0xb0, 2 + rest.length, body[0], body[1], ...rest]),
    )
    if (wish === undefined) return
    const block = blockFor(this.#version, wish)
    if (block !== this.#block) this.#wanted = this.#sent = this.#acknowledged = 0
    this.#block = block
    this.#wanted += wish.count
    this.#rate = wish.rate
    this.#since = performance.now()
  }

  // Answers must not fall into the middle of a packet.
  #flush() {
    if (
      this.#answers.length === 0 ||
      (this.#block !== undefined && this.#sent % this.#block.frame !== 0)
    )
      return
    this.#socket.write(Buffer.concat(this.#answers))
    this.#answers = []
  }

  #stream() {
    const block = this.#block
    if (block === undefined) return
    const { frame, count, bytes, qos } = block
    const window = Math.min(this.#receiveMaximum, count)
    while (!this.#full && !this.#socket.destroyed) {
      const due =
        this.#rate === 0
          ? this.#wanted
          : Math.floor(((performance.now() - this.#since) / 1000) * this.#rate)
      const limit = Math.min(
        this.#wanted,
        due,
        qos === 0 ? this.#wanted : this.#acknowledged + window,
      )
      const left = limit * frame - this.#sent
      if (left <= 0) break
      const from = this.#sent % bytes.length
      const size = Math.min(left, bytes.length - from, slice)
      this.#full = !this.#socket.write(bytes.subarray(from, from + size))
      this.#sent += size
    }
    this.#flush()
    if (this.#rate > 0 && this.#sent < this.#wanted * frame && !this.#socket.destroyed) {
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.#stream(), 1)
    }
  }
}

const [, , folder] = process.argv
const file = (name) => readFileSync(path.join(folder, name))
const accept = (socket) => new Connection(socket)
const server =
  folder === undefined
    ? createServer({ highWaterMark: readSize }, accept)
    : createTlsServer({ key: file('key.pem'), cert: file('certificate.pem') }, accept)
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
