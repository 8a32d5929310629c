/**
 * `npm run bench`: what mqwire does beside its peers, as ratios. `--json` prints one object for machines.
 *
 * Run it on a quiet machine; differences under 10 % are noise.
 */
import { codecRows } from './codec.js'
import { machine } from './measure.js'

const rows = codecRows().map(([name, { mqwire, 'mqtt-packet': peer }]) => ({ name, mqwire, peer, ratio: peer / mqwire }))

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ machine: machine(), rows }))
} else {
  console.log(`${machine()}\n`)
  console.log('| work | mqwire, ns | mqtt-packet, ns | ratio |\n| --- | ---: | ---: | ---: |')
  for (const { name, mqwire, peer, ratio } of rows) console.log(`| ${name} | ${mqwire.toFixed(0)} | ${peer.toFixed(0)} | ${ratio.toFixed(1)}× |`)
}
