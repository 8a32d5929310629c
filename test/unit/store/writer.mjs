/**
 * A process that holds a store: `node writer.mjs STORE LOCATION OPTIONS`. It says on its standard output what happens, a line each, and obeys its standard input:
 * `write FROM COUNT` writes entries one after the other, each said once it has settled; `close` closes. It uses the package as built.
 */
import { createInterface } from 'node:readline'
import { fileStore } from '../../../dist/store/file.js'
import { levelStore } from '../../../dist/store/level.js'

const [name, location, options = '{}'] = process.argv.slice(2)
const say = (text) => process.stdout.write(`${text}\n`)

let store
const ready = { levelStore, fileStore }[name](location, JSON.parse(options)).then(
  (opened) => {
    store = opened
    say('open')
  },
  (error) => say(`refused ${error.code}`),
)

async function write(from, count) {
  for (let number = from; number < from + count; number++) {
    const value = new Uint8Array(2000).fill(number)
    try {
      await store.batch([
        { type: 'put', key: `q/${String(number).padStart(6, '0')}`, value },
        { type: 'put', key: 'last', value: new TextEncoder().encode(String(number)) },
      ])
      say(`stored ${number}`)
    } catch (error) {
      say(`rejected ${number} ${error.code} ${error.cause?.code}`)
    }
  }
  say('written')
}

for await (const line of createInterface({ input: process.stdin })) {
  await ready
  const [word, ...numbers] = line.split(' ')
  if (word === 'write') void write(...numbers.map(Number))
  if (word === 'close') {
    await store.close()
    say('closed')
    process.exit()
  }
}
