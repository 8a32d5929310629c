/**
 * What the demo prints: a line that is rewritten in place on a terminal, or one line a second where the output goes into a file or a pipe, and the
 * outcome at the end. Plain text: nothing depends on colour, and the cursor stays visible.
 */

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const count = (value) => grouped.format(value)
const short = (value) => compact.format(value)
const sum = (values) => values.reduce((total, value) => total + value, 0)

// As many digits as matter.
function milliseconds(value) {
  if (value === undefined) return '-'
  return value < 99.95 ? value.toFixed(1) : count(value)
}

/** The introduction: what runs against which broker. */
export function introduction({ broker, prefix, devices, overWebSocket, rate, seconds, page }) {
  const some =
    overWebSocket > 0
      ? `${devices - overWebSocket} over TCP, ${overWebSocket} over WebSocket; `
      : ''
  return [
    ...page.map((line, index) => `${index === 0 ? 'Dashboard' : ''}`.padEnd(11) + line),
    `Broker     ${broker.name}`,
    ...(broker.foreign ? [] : broker.urls.map((url) => `           ${url}`)),
    `Devices    ${count(devices)} (${some}each ${rate} messages/s, at QoS 0, 1 and 2 in turn)`,
    `Topics     ${prefix}/<device>/<format>, read by one subscriber at QoS 2`,
    `Watch it   npx mqwire watch --url ${broker.foreign ? broker.name : broker.urls[0]}, in another terminal`,
    `Stop with  Ctrl-C${seconds === undefined ? '' : `, or wait ${seconds} s`}`,
    '',
  ].join('\n')
}

/** The live figures as text: the longest form that fits into the columns. */
export function liveText(
  { seconds, rate, p50, p99, received, missing, twice },
  columns = Number.POSITIVE_INFINITY,
) {
  const [missed, repeated] = [count(missing), count(twice)]
  const latency = `p50 ${milliseconds(p50)}  p99 ${milliseconds(p99)} ms`
  const counts = received.map((value, qos) => `QoS ${qos}: ${count(value)}`).join('  ')
  const forms = [
    `${seconds} s   ${count(rate)} messages/s   latency ${latency}   received ${counts}   missing ${missed}  twice ${repeated}`,
    `${seconds} s  ${count(rate)} msg/s  ${latency}  ${counts}  missing ${missed}  twice ${repeated}`,
    `${seconds} s  ${count(rate)}/s  ${latency}  QoS 0/1/2 ${received.map(short).join(' ')}  missing ${short(missing)}  twice ${short(twice)}`,
    `${seconds} s  ${count(rate)}/s  missing ${short(missing)}  twice ${short(twice)}`,
  ]
  return forms.find((form) => form.length < columns) ?? forms[3].slice(0, Math.max(0, columns - 1))
}

/** A line that changes. */
export class LiveLine {
  #stream
  #inPlace
  #open = false

  constructor(stream) {
    this.#stream = stream
    this.#inPlace = stream.isTTY === true && process.env.TERM !== 'dumb'
  }

  /** Shows the figures in place of those before. */
  show(figures) {
    if (this.#inPlace)
      this.#stream.write(`\r${liveText(figures, this.#stream.columns || 80)}\x1b[K`)
    else this.#stream.write(`${liveText(figures)}\n`)
    this.#open = this.#inPlace
  }

  /** Leaves the figures where they are; what is written next starts a new line. */
  end() {
    if (this.#open) this.#stream.write('\n')
    this.#open = false
  }
}

function table(rows) {
  const names = ['sent', 'received', 'missing', 'twice']
  const line = (first, cells) => first.padEnd(5) + cells.map((cell) => cell.padStart(13)).join('')
  const body = rows.map((row, qos) => {
    const cells = names.map((name) => count(row[name]))
    return line(`QoS ${qos}`, cells)
  })
  return [line('', names), ...body]
}

function verdict(rows, found) {
  if (rows.every((row) => row.sent === 0)) return 'Nothing was sent, so nothing was checked.'
  if (found.length > 0) return `FAILED: ${found.join(', ')}.`
  if (rows[0].missing > 0)
    return 'OK: nothing lost at QoS 1 and 2, nothing twice at QoS 2; QoS 0 may be lost.'
  if (rows[1].twice > 0) return 'OK: nothing lost, and twice only at QoS 1, which may repeat.'
  return 'OK: nothing lost, nothing twice.'
}

/** The outcome. `rows` has `sent`, `received`, `missing`, `twice` for each QoS, `found` what is wrong with them. */
export function summary({ rows, found, seconds, devices, rate, latency, dropped }) {
  const total = (name) => sum(rows.map((row) => row[name]))
  const [sent, received] = [total('sent'), total('received')]
  const percentile = (share) => milliseconds(latency.percentile(share))
  return [
    '',
    ...table(rows),
    '',
    `${count(received)} messages in ${seconds.toFixed(1)} s (${count(received / seconds)}/s): ${count(total('missing'))} missing, ${count(total('twice'))} twice.`,
    `Latency: half within ${percentile(0.5)} ms, 99% within ${percentile(0.99)} ms, longest ${milliseconds(latency.max)} ms.`,
    // The first message of a device and the last may fall short of their share of time.
    ...(sent < 0.9 * devices * (rate * seconds - 2)
      ? [
          `The devices slowed down to what was taken: ${count(sent / seconds)} messages/s of the ${count(devices * rate)} wanted.`,
        ]
      : []),
    ...(dropped > 0
      ? [`The subscriber's buffer was full and dropped ${count(dropped)} at QoS 0.`]
      : []),
    verdict(rows, found),
  ].join('\n')
}
