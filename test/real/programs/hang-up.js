/**
 * A server double for `reconnects.js`, in a thread of its own so that its memory is not the client's: takes a connection in, talks for a moment and
 * hangs up, or keeps the connection of the number that it was told last. It has a codec of its own.
 */
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import mqttPacket from 'mqtt-packet'
import { createWebSocketStream, WebSocketServer } from 'ws'

let connections = 0
let lasting = 0

// Answers what must be answered, and acknowledges only what comes for the second time. Hangs up once it has had both a publish and an acknowledgement.
function talk(socket) {
  const number = ++connections
  const parser = mqttPacket.parser({ protocolVersion: 5 })
  const send = (packet) => socket.write(mqttPacket.generate(packet, { protocolVersion: 5 }))
  const message = {
    cmd: 'publish',
    topic: 'down',
    payload: `${number}`,
    qos: 1,
    messageId: 7,
    dup: false,
    retain: false,
  }
  const heard = new Set()

  function hangUp(cmd) {
    heard.add(cmd)
    if (number >= lasting || !heard.has('publish') || !heard.has('puback')) return
    if (socket.resetAndDestroy === undefined || number % 2 === 0) socket.destroy()
    else socket.resetAndDestroy()
  }

  parser.on('packet', (packet) => {
    const { cmd, messageId, dup } = packet
    if (cmd === 'connect') send({ cmd: 'connack', sessionPresent: number > 1, reasonCode: 0 })
    if (cmd === 'subscribe') send({ cmd: 'suback', messageId, granted: [1] })
    if (cmd === 'subscribe' || (cmd === 'connect' && number > 1)) send(message)
    if (cmd === 'publish' && (dup || number >= lasting))
      send({ cmd: 'puback', messageId, reasonCode: 0 })
    if (cmd === 'publish' || cmd === 'puback') hangUp(cmd)
  })
  socket.on('data', (chunk) => parser.parse(chunk)).on('error', () => undefined)
}

const { websocket } = workerData
const server = websocket ? createHttpServer() : createServer(talk)
if (websocket)
  new WebSocketServer({ server }).on('connection', (socket) => talk(createWebSocketStream(socket)))
server.listen(0, '127.0.0.1', () => parentPort.postMessage({ port: server.address().port }))

parentPort.on('message', (next) => {
  lasting = next
  parentPort.postMessage({ lasting })
})
