/**
 * Ways to read a stream of PUBLISH packets, each checked to read it all. Runs in browsers as well.
 *
 * Equal work: every candidate parses every packet and adds up topic and payload lengths. What mqtt-packet does not check it is not charged for.
 * The ways of mqwire are those of its public API, as far as the build at hand has them.
 */
import { streamOf, windowOf } from './workload.js'

/** Whole rounds of the stream, at least `count` packets. */
function looping({ chunks, count: perPass, sum }, read) {
  return (count) => {
    let done = 0
    for (; done < count; done += perPass) {
      let total = 0
      for (let index = 0; index < chunks.length; index++) total += read(chunks[index])
      if (total !== sum) throw new Error(`${total} of ${sum} bytes were read`)
    }
    return done
  }
}

/** Reads all properties of a packet, so that they must be decoded. */
function touched(properties) {
  let length = 0
  for (const [name, value] of properties.userProperties ?? []) length += name.length + value.length
  return length > 0 ? 0 : 1
}

function byDecoder({ Decoder }, stream, { properties }) {
  const decoder = new Decoder({ from: 'server' })
  return looping(stream, (chunk) => {
    let total = 0
    for (const packet of decoder.push(chunk))
      total +=
        packet.topic.length + packet.payload.length + (properties ? touched(packet.properties) : 0)
    return total
  })
}

function byScanner({ Scanner }, stream, { properties }, more = {}) {
  const scanner = new Scanner({ from: 'server', ...more })
  const { publish } = scanner
  if (properties) {
    return looping(stream, (chunk) => {
      let total = 0
      scanner.push(chunk)
      while (scanner.next())
        total +=
          publish.record.name.length +
          publish.payloadEnd -
          publish.payloadStart +
          touched(publish.properties())
      return total
    })
  }
  return looping(stream, (chunk) => {
    let total = 0
    scanner.push(chunk)
    while (scanner.next())
      total += publish.record.name.length + publish.payloadEnd - publish.payloadStart
    return total
  })
}

// The scanner's own window holds the bytes, as after a read of a socket.
function inPlace({ Scanner }, wasm, { bytes, count, sum }, { properties }) {
  const scanner = new Scanner({ from: 'server', scanner: wasm })
  const { publish } = scanner
  const window = wasm.window.bytes
  const lazily = () => {
    let total = 0
    scanner.push(window, bytes.length)
    while (scanner.next())
      total += publish.record.name.length + publish.payloadEnd - publish.payloadStart
    return total
  }
  const whole = () => {
    let total = 0
    scanner.push(window, bytes.length)
    while (scanner.next())
      total +=
        publish.record.name.length +
        publish.payloadEnd -
        publish.payloadStart +
        touched(publish.properties())
    return total
  }
  window.set(bytes)
  return looping({ chunks: [bytes], count, sum }, properties ? whole : lazily)
}

function byMqttPacket({ parser: makeParser }, stream, { properties }) {
  const parser = makeParser({ protocolVersion: 5 })
  let total = 0
  parser.on('packet', (packet) => {
    total += packet.topic.length + packet.payload.length
    if (properties)
      for (const name of Object.keys(packet.properties.userProperties))
        if (name.length === 0) total++
  })
  const chunks = stream.chunks.map((chunk) =>
    Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length),
  )
  return looping({ ...stream, chunks }, (chunk) => {
    total = 0
    parser.parse(chunk)
    return total
  })
}

/**
 * Candidates by name: `mqtt-packet` where it is given, `objects` (Decoder), `TypeScript` (Scanner), `WebAssembly, copied in` and `WebAssembly, in place`.
 * What this build lacks is left out.
 * @param {{ wire: object, wasm?: object, mqttPacket?: object }} libraries
 * @param {{ properties?: boolean, only?: string[] }} [options] read all properties too; names of candidates: a pair has a process of its own
 */
export function decoders({ wire, wasm, mqttPacket }, workload, { properties = false, only } = {}) {
  const stream = streamOf(workload, wire.encode)
  const how = { properties }
  const makers = { objects: () => byDecoder(wire, stream, how) }
  if (mqttPacket !== undefined) makers['mqtt-packet'] = () => byMqttPacket(mqttPacket, stream, how)
  if (wire.Scanner !== undefined) {
    makers['TypeScript'] = () => byScanner(wire, stream, how)
    if (wasm !== undefined) {
      makers['WebAssembly, copied in'] = () => byScanner(wire, stream, how, { scanner: wasm })
      // A window that is read again and again has the same topics again and again.
      if (workload.topic === undefined)
        makers['WebAssembly, in place'] = () =>
          inPlace(wire, wasm, windowOf(workload, wire.encode), how)
    }
  }
  const wanted = Object.entries(makers).filter(
    ([name]) => only === undefined || only.includes(name),
  )
  return Object.fromEntries(wanted.map(([name, make]) => [name, make()]))
}
