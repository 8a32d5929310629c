/**
 * Test files of the pure suites that the browser does not run, each with the reason, and single tests of others, by a part of their title. What is
 * not named here is run, files that are new among it.
 */

const sockets = 'sockets and servers of Node'
const processes = 'starts processes, reads and writes files'
const compiler = 'compiles AssemblyScript'
const memory = 'measures the memory of a Node process'
const counted = 'the engine counts blocks, as Node lets it'
const stack = 'passes 65,535 arguments in one call, for which the stack of a worker is too small'
const unhandled = 'rejections that nobody handles, as Node reports them'
const platformTime = 'waits for a timer of the platform, whose time stands still there'
const printing = 'how Node prints objects'

/** File to the reason, or to titles of its tests with the reason of each. */
export const leftOut: Readonly<Record<string, string | Readonly<Record<string, string>>>> = {
  'unit/client/durable/full-store.test.ts': platformTime,
  'unit/client/durable/entries.test.ts': platformTime,
  'unit/client/connect.test.ts': sockets,
  'unit/client/cost-bytes.test.ts': counted,
  'unit/client/cost.test.ts': counted,
  'unit/client/error-stacks.test.ts': {
    'are written when they are read': printing,
    'can be read where an application made': printing,
    'are taken once where the encoder objects':
      'stacks that are written when they are read, which those of a page are not',
  },
  'unit/client/endpoint.test.ts': 'endpoints of Node: TCP, TLS, Unix sockets',
  'unit/client/large-uploads-sockets.test.ts': sockets,
  'unit/client/loud.test.ts': unhandled,
  'unit/client/message-memory.test.ts': memory,
  'unit/client/no-channel.test.ts':
    'takes away the channels that the transport in memory needs in a browser',
  'unit/client/output-sockets.test.ts': sockets,
  'unit/client/process-end.test.ts': 'the end of a Node process',
  'unit/client/reentrancy.test.ts': { 'keep nothing from its turn': 'an endpoint of Node' },
  'unit/client/hostile-broker.test.ts': { 'the memory budget bounds small writes': stack },
  'unit/client/request.test.ts': { 'client.request() that nobody awaits': unhandled },
  'unit/client/secrets-canary.test.ts': {
    'hears what any test of the suite prints': 'the console of the suites in Node',
  },
  'unit/client/secrets-node.test.ts': sockets,
  'unit/client/secrets.test.ts': {
    'options that are refused do not repeat their values': 'an endpoint of Node',
  },
  'unit/client/session/identifiers.test.ts': {
    'with acknowledgements withheld exactly 65,535 leave': stack,
  },
  'unit/client/subscription-cost.test.ts': counted,
  'unit/client/unsubscribe.test.ts': { 'an unsubscribe() that nobody awaits': unhandled },
  'rules/client-stream.test.ts': sockets,
  'rules/corpus/corpus.test.ts': processes,
  'unit/queue/dead-letters.test.ts': {
    'the same when it is tried again': platformTime,
    'as often as maxRefusals says': platformTime,
  },
  'unit/queue/odd-times.test.ts': {
    'what leaves has no more time than it had': 'sets the clock of a Node process',
  },
  'unit/queue/progress.test.ts': {
    'is what it is while the clock is set': 'sets the clock of a Node process',
  },
  'unit/queue/cost.test.ts': counted,
  'unit/queue/closing.test.ts': { 'leaves no timer behind': 'the timers of a Node process' },
  'broker/hooks.test.ts': { 'show no password': printing },
  'broker/options.test.ts': sockets,
  'broker/outside-clients.test.ts': processes,
  'broker/serve.test.ts': sockets,
  'broker/platform.test.ts': processes,
  'unit/wasm/binary.test.ts': compiler,
  'unit/wasm/fuzz.test.ts': compiler,
  'unit/wasm/loader.test.ts': 'loads modules anew, which a page does only when it is loaded anew',
  'unit/wasm/text.test.ts': compiler,
  'unit/wasm/topics.test.ts': compiler,
  'unit/wire/carry.test.ts': { 'is at most sixteen times what came in': memory },
  'unit/wire/encode.test.ts': { 'before it takes the memory': memory },
  'unit/wire/framer.test.ts': { 'holds at most twice what arrived': memory },
  'unit/wire/scanner.test.ts': { 'holds nothing of the chunk': memory },
  'unit/wire/shared-text.test.ts': 'puts a decoder of its own in place of the platform’s',
}

/**
 * Files that run for seconds, at random or over every byte: only `npm run lab -- browsers inside` runs them in the browser too. What they show depends on the engine
 * no more than what the others show.
 */
export const long: readonly string[] = [
  'unit/client/backpressure.test.ts',
  'unit/client/flow-control.test.ts',
  'unit/client/half-written.test.ts',
  'unit/client/hostile-bytes.test.ts',
  'unit/client/hostile-mutated.test.ts',
  'unit/client/hostile.test.ts',
  'unit/client/inbound-bytes.test.ts',
  'unit/client/large-uploads.test.ts',
  'unit/client/lifecycle-calls.test.ts',
  'unit/client/lifecycle.test.ts',
  'unit/client/network.test.ts',
  'unit/client/outbound-policies.test.ts',
  'unit/client/outcome.test.ts',
  'unit/client/output.test.ts',
  'unit/client/poisoned.test.ts',
  'unit/client/publish.test.ts',
  'unit/client/reconnect-decide.test.ts',
  'unit/client/reconnect-fleet.test.ts',
  'unit/client/registry-model.test.ts',
  'unit/client/replay-bytes.test.ts',
  'unit/client/request-broker.test.ts',
  'unit/client/ring.test.ts',
  'unit/client/secrets-canary.test.ts',
  'unit/client/session-lost-expiry.test.ts',
  'unit/client/session/model.test.ts',
  'unit/client/session/suspend-inbound.test.ts',
  'unit/client/set-brokers-anywhere.test.ts',
  'unit/client/settle.test.ts',
  'unit/client/unsubscribe.test.ts',
  'unit/client/windows.test.ts',
  'broker/fuzz.test.ts',
  'broker/vectors.test.ts',
  'rules/client-acks.test.ts',
  'rules/client-data.test.ts',
  'rules/client-delivery.test.ts',
  'rules/client-goodbye.test.ts',
  'rules/client-publish.test.ts',
  'rules/corpus/core.test.ts',
  'rules/corpus/memory-client.test.ts',
  'broker/bounds.test.ts',
  'broker/qos.test.ts',
  'unit/wasm/interleaved.test.ts',
  'unit/wasm/vectors.test.ts',
  'unit/wire/carry.test.ts',
  'unit/wire/encoder.test.ts',
  'unit/wire/framer.test.ts',
  'unit/wire/polluted.test.ts',
  'unit/wire/read-once.test.ts',
  'unit/wire/scanner.test.ts',
  'unit/wire/strict-property.test.ts',
  'unit/wire/strict-strings.test.ts',
  'unit/wire/topic-table.test.ts',
  'unit/wire/topics.test.ts',
  'unit/wire/vectors.test.ts',
]
