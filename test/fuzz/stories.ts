/**
 * Programs to begin with for the target `client`: what applications do, and what servers do to them.
 *
 * A story is a list of operations, each with its arguments in decimal; `client-program.ts` says what they mean. They are valid or nearly so: the
 * search takes them apart.
 */
import { join } from './build.js'
import { operationNumbers } from './client-program.js'
import { setupLength } from './client-setup.js'

/** Setups, as the first bytes of an input. */
const settings: readonly string[] = ['', '02', '48', '14040000000001', '080104', '1080', '304a55', '00000000000006', '0000000022']

/** What happens under each of them, once the client is connected: operations with their arguments. */
const stories: readonly string[] = [
  'publish 0 1 1; publish 1 2 2; publish 0 1 0; answer all',
  'subscribe 0 2 0; a message 0 1 1 1; read 0; ack 0 0; read 0',
  'subscribe 1 4 0; messages 0 2 1 1; next 0 0; next 0 0; an acknowledgement 2 0 0',
  'listen 0 1; a message 0 1 1 1; wait 3; end listening 0 0',
  'request 0 0; a message 3 33 1 1; wait 4',
  'respond 0 0; a message 0 33 1 1; wait 1',
  'subscribe 0 4 0; iterate 0 0; a message 0 2 1 1; step 0; step 0; leave 0',
  'publish 0 1 2; cut 1; wait 6; reconnect 0; wait 4; publish 0 1 1; wait 7',
  'the peer changes its manner; publish 0 1 2; answer one 0; answer one 0; disconnect 8 4; answer all',
  'stall 0; publish 0 1 16; post 0 1; flush; stall 1; wait 4; disconnect 0 5',
  'the peer changes its manner; wait 7; wait 6; wait 6',
  'subscribe 3 4 1; unsubscribe 3 0; reconnect 1; wait 4; DISCONNECT 12 0; wait 7',
  'subscribe 0 4 0; next 0 0; cut 1; wait 3',
  'subscribe 0 2 0; a message 0 1 1 1; publish 0 3 1; destroy',
  'reauthenticate; AUTH 1; CONNACK 0 0; wait 1',
  'bytes 9 50 7 0 1 116 0 1 0 120; bytes 1 208 0; destroy',
]

/** What happens under one setup: messages in hand across connections, refusals, handlers that fail, requests, and so on. */
const deepStories: readonly (readonly [setup: string, story: string])[] = [
  ['0000000022', 'subscribe 0 0 0; messages 0 0 1 1; read 0; read 0; read 0; read 0; messages 0 1 2 1; read 0'],
  [
    '',
    'subscribe 0 12 0; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; read 0; read 0; read 0; ack 1 0; ack 0 0; ack 0 3; ack 2 0; wait 6',
  ],
  [
    '14040000000001',
    'subscribe 0 12 0; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; read 0; read 0; cut 1; ack 0 0; wait 6; a message 0 5 1 0; a message 0 6 1 1; a message 0 5 1 2; ack 1 0; wait 1',
  ],
  [
    '14040000000001',
    'subscribe 0 4 0; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; next 0 0; next 0 0; cut 1; wait 6; a message 0 5 1 0; a message 0 6 1 1; a message 0 5 1 2; next 0 0; wait 6',
  ],
  [
    '14040000000001',
    'the peer changes its manner; subscribe 0 4 0; answer all; a message 0 2 1 2; next 0 0; next 0 0; wait 1; cut 1; the peer changes its manner; wait 6; a message 0 5 1 0; a message 0 6 1 1; a message 0 5 1 2; an acknowledgement 2 1 0',
  ],
  [
    '14040000000001',
    'publish 0 1 2; the peer changes its manner; publish 0 1 1; publish 0 1 2; answer one 0; answer one 0; cut 1; the peer changes its manner; wait 6; wait 6',
  ],
  ['14040000000001', 'wait 1; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; subscribe 0 2 0; read 0; read 0; wait 7'],
  ['14040040000001', 'a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; wait 4'],
  [
    '14040000000001',
    'subscribe 0 2 3; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; read 0; end 0 1; wait 4; subscribe 0 2 0; read 1; read 1; end 1 0',
  ],
  ['', 'subscribe 0 2 0; iterate 0 3; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; step 0; wait 1; step 0; wait 1; leave 0; wait 1'],
  ['', 'subscribe 0 2 16; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; read 0; keep 0; read 0; wait 1; keep 1; end 0 0'],
  ['', 'subscribe 0 10 0; iterate 0 4; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; step 0; step 0; ack 0 0; leave 0'],
  ['0000000002', 'subscribe 0 2 0; messages 0 1 1 1; wait 1; messages 0 0 1 1; wait 1; a message 0 1 1 6; wait 6; read 0; read 0'],
  ['0000000044', 'subscribe 0 18 0; messages 0 1 1 1; wait 1; messages 0 1 1 1; wait 1; a message 0 1 1 6; read 0'],
  ['', 'subscribe 0 2 0; subscribe 1 4 0; a message 0 65 1 1; read 0; read 1; read 0; read 1; unsubscribe 0 1; wait 1'],
  ['', 'listen 0 9; a message 0 1 1 1; wait 4; wait 5; wait 6; wait 6'],
  ['', 'listen 0 33; a message 0 1 1 1; a message 0 2 1 2; disconnect 0 4; wait 6'],
  ['', 'listen 0 22; messages 0 1 1 1; end listening 0 1; wait 4'],
  ['', 'the peer changes its manner; subscribe 0 4 4; answer one 3; subscribe 1 5 0 4; answer one 0; unsubscribe 0 1; answer one 4; wait 1'],
  ['03', 'the peer changes its manner; cut 0; wait 5; CONNACK 0 12; wait 6; answer one 3; wait 6'],
  ['10', 'dials fail 2; cut 1; wait 7; DISCONNECT 13 1; wait 7; DISCONNECT 9 0; wait 7'],
  ['3080', 'the peer changes its manner; reauthenticate; AUTH 5; AUTH 1; AUTH 8; wait 1'],
  ['0080', 'AUTH 4; reauthenticate; answer one 1; AUTH 12; wait 1'],
  ['', 'request 0 1; wait 1; a reply 1; request 0 0; a reply 8; a reply 4; a reply 0; wait 6'],
  ['00000000000810', 'request 0 2; wait 1; a reply 2; cut 1'],
  ['', 'respond 0 0; a message 0 33 1 1; wait 1; a message 0 34 1 2; wait 1; a message 0 1 1 3; end listening 0 0'],
  [
    '10000401',
    'the peer changes its manner; cut 1; publish 0 1 32; publish 0 1 1; publish 0 1 2; publish 0 1 5; wait 5; the peer changes its manner; wait 7',
  ],
  ['', 'subscribe 0 4 0; wait 2; sleep 8; wait 5; sleep 9; PINGRESP; wait 5'],
  [
    '00000000000080',
    'subscribe 0 2 16; a message 0 1 1 0; a message 0 2 1 1; messages 0 1 1 2; read 0; wait 1; read 0; keep 0; end 0 1; subscribe 0 2 0; read 1',
  ],
  ['000000000080', 'listen 0 145; a message 0 1 1 0; messages 0 2 1 1; messages 0 0 1 2; end listening 0 1; subscribe 0 2 0; read 0'],
  ['000000000080', 'listen 0 129; messages 0 1 1 0; messages 0 0 2 2; subscribe 0 2 16; messages 0 1 1 4; read 0; wait 1; read 0'],
  ['', 'watch 0; subscribe 0 4 0; a message 0 1 1 0; a message 0 2 1 1; a message 0 1 1 2; publish 0 1 1; publish 0 1 8; disconnect 2 4'],
]

const beginning = 'connect 0; wait 2'

// The setup is filled up with zeros.
function program(setup: string, story: string): Uint8Array {
  const start = new Uint8Array(setupLength)
  start.set(Buffer.from(setup, 'hex'))
  return join(start, ...`${beginning}; ${story}`.split('; ').map(operation))
}

function operation(text: string): number[] {
  const words = text.split(' ')
  const first = words.findIndex((word) => !Number.isNaN(Number(word)))
  const name = words.slice(0, first < 0 ? undefined : first).join(' ')
  const number = operationNumbers.get(name)
  if (number === undefined) throw new Error(`there is no operation '${name}'`)
  return [number, ...words.slice(first < 0 ? words.length : first).map(Number)]
}

/** Every story as an input. */
export function clientStories(): Uint8Array[] {
  const usual = settings.flatMap((setup) => stories.map((story) => program(setup, story)))
  return [...deepStories.map(([setup, story]) => program(setup, story)), ...usual]
}
