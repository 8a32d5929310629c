/**
 * Test files of the pure suites that the browser does not run, each with the reason, and single tests of others, by a part of their title. What is
 * not named here is run, files that are new among it.
 */

const sockets = 'sockets and servers of Node'
const processes = 'starts processes, reads and writes files'
const compiler = 'compiles AssemblyScript'
const memory = 'measures the memory of a Node process'
const stack = 'passes 65,535 arguments in one call, for which the stack of a worker is too small'
const printing = 'how Node prints objects'

/** File to the reason, or to titles of its tests with the reason of each. */
export const leftOut: Readonly<Record<string, string | Readonly<Record<string, string>>>> = {
  'client/connect.test.ts': sockets,
  'client/endpoint.test.ts': 'endpoints of Node: TCP, TLS, Unix sockets',
  'client/message-memory.test.ts': memory,
  'client/no-channel.test.ts': 'takes away the channels that the transport in memory needs in a browser',
  'client/output-sockets.test.ts': sockets,
  'client/queue.test.ts': { 'without quadratic cost': 'a time limit, which is kept in Node' },
  'client/review-strict.test.ts': { 'the memory budget bounds small writes': stack },
  'client/secrets-canary.test.ts': { 'hears what any test of the suite prints': 'the console of the suites in Node' },
  'client/secrets-node.test.ts': sockets,
  'client/secrets.test.ts': { 'options that are refused do not repeat their values': 'an endpoint of Node' },
  'client/session/identifiers.test.ts': { 'with acknowledgements withheld exactly 65,535 leave': stack },
  'conformance/broker-transport.test.ts': sockets,
  'conformance/client-stream.test.ts': sockets,
  'conformance/conformance.test.ts': processes,
  'conformance/coverage.test.ts': processes,
  'conformance/rows.test.ts': processes,
  'corpus/corpus.test.ts': processes,
  'corpus/tcp.test.ts': sockets,
  'corpus/websocket.test.ts': sockets,
  'testing/broker/hooks.test.ts': { 'show no password': printing },
  'testing/broker/outside-mosquitto.test.ts': processes,
  'testing/broker/outside-mqttjs.test.ts': sockets,
  'testing/broker/platform.test.ts': processes,
  'wasm/binary.test.ts': compiler,
  'wasm/fuzz.test.ts': compiler,
  'wasm/loader.test.ts': 'loads modules anew, which a page does only when it is loaded anew',
  'wasm/text.test.ts': compiler,
  'wasm/topics.test.ts': compiler,
  'wire/carry.test.ts': { 'is at most sixteen times what came in': memory },
  'wire/encode.test.ts': { 'before it takes the memory': memory },
  'wire/framer.test.ts': { 'holds at most twice what arrived': memory },
  'wire/mqtt-packet.test.ts': 'compares with a codec that is written for Node',
  'wire/strict-mqtt-packet-property.test.ts': 'compares with a codec that is written for Node',
  'world/world.test.ts': processes,
}

/**
 * Files that run for seconds, at random or over every byte: only `npm run inside` runs them in the browser too. What they show depends on the engine
 * no more than what the others show.
 */
export const long: readonly string[] = [
  'client/backpressure.test.ts',
  'client/durable-random.test.ts',
  'client/flow-control.test.ts',
  'client/hostile.test.ts',
  'client/inbound-bytes.test.ts',
  'client/lifecycle-calls.test.ts',
  'client/lifecycle.test.ts',
  'client/outbound-policies.test.ts',
  'client/outcome.test.ts',
  'client/output.test.ts',
  'client/publish.test.ts',
  'client/reconnect-decide.test.ts',
  'client/reconnect-fleet.test.ts',
  'client/registry-model.test.ts',
  'client/replay-bytes.test.ts',
  'client/replay-chunks.test.ts',
  'client/review-requests.test.ts',
  'client/review-subscriptions.test.ts',
  'client/ring.test.ts',
  'client/rows-half-written.test.ts',
  'client/rows-hostile-properties.test.ts',
  'client/rows-hostile.test.ts',
  'client/rows-mutated.test.ts',
  'client/rows-network.test.ts',
  'client/secrets-canary.test.ts',
  'client/session-lost-bytes.test.ts',
  'client/session-lost-expiry.test.ts',
  'client/session/model.test.ts',
  'client/session/suspend-inbound.test.ts',
  'client/settle.test.ts',
  'client/unsubscribe.test.ts',
  'client/windows.test.ts',
  'conformance/broker-fuzz.test.ts',
  'conformance/broker-vectors.test.ts',
  'conformance/client-acks.test.ts',
  'conformance/client-data.test.ts',
  'conformance/client-goodbye.test.ts',
  'conformance/client-publish.test.ts',
  'corpus/core.test.ts',
  'corpus/memory-pieces.test.ts',
  'corpus/memory-whole.test.ts',
  'testing/broker/bounds.test.ts',
  'testing/broker/flow.test.ts',
  'wasm/interleaved.test.ts',
  'wasm/vectors.test.ts',
  'wire/carry.test.ts',
  'wire/encoder.test.ts',
  'wire/framer.test.ts',
  'wire/fuzz.test.ts',
  'wire/scanner.test.ts',
  'wire/strict-property.test.ts',
  'wire/strict-strings.test.ts',
  'wire/topic-table.test.ts',
  'wire/topics.test.ts',
  'wire/vectors.test.ts',
]
