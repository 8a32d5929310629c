/**
 * The report of a run: one HTML file that needs nothing else. Pure.
 *
 * Everything in it is text, escaped, and its own policy lets it load and run nothing. It has no user name, no password, and of the broker's address only
 * scheme, host and path.
 */
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text) => String(text).replaceAll(/[&<>"']/g, (character) => entities[character])

const style = `:root{color-scheme:light dark}body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}
table{border-collapse:collapse;width:100%}th,td{padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8886;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{font-weight:600}td:first-child{white-space:nowrap;width:11rem}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}pre{white-space:pre-wrap;overflow-wrap:anywhere}.verdict{font-size:1.15rem;font-weight:600}`

/** The ledger in one sentence. */
export function verdictOf({ sent, acknowledged, arrived, lost, twice, awaited }, isOver) {
  if (sent === 0) return 'No message was sent.'
  if (acknowledged === 0)
    return `Nothing was acknowledged, so nothing was promised: ${whole.format(arrived)} of ${whole.format(sent)} messages arrived.`
  const until = isOver ? '' : 'So far, '
  const counts = `${whole.format(acknowledged)} messages were acknowledged, ${whole.format(arrived)} of ${whole.format(sent)} arrived${awaited > 0 ? `, ${whole.format(awaited)} are on their way` : ''}`
  const verdict =
    lost + twice === 0
      ? 'nothing was lost at QoS 1 and 2, and nothing came twice at QoS 2'
      : `${whole.format(lost)} acknowledged messages were lost at QoS 1 and 2, and ${whole.format(twice)} came twice at QoS 2`
  const sentence = `${until}${verdict}: ${counts}.`
  return sentence[0].toUpperCase() + sentence.slice(1)
}

const time = (at) =>
  new Date(at)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z/, ' UTC')
const seconds = (milliseconds) => `${fine.format(milliseconds / 1000)} s`

function tableOf(rows, head) {
  const line = (cells, tag) =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`
  const first = head === undefined ? '' : line(head, 'th')
  return `<table>${first}${rows.map((cells) => line(cells, 'td')).join('')}</table>`
}

/**
 * The report. `run` has `began`, `ended` (milliseconds since 1970) and `faults`; `settings` are pairs of a name and a value; `latency` has `percentile()`;
 * `description` is that of a scenario; `failure` says what went wrong at the broker, empty for nothing.
 */
export function reportOf({
  broker,
  settings,
  run,
  now,
  figures,
  latency,
  entries,
  description,
  failure,
}) {
  const isOver = run.ended !== undefined
  const end = run.ended ?? now
  const percentiles = [0.5, 0.9, 0.99].map((share) => [
    `Latency, ${share * 100} %`,
    `${fine.format(latency.percentile(share))} ms`,
  ])
  const latencies =
    latency.count === 0
      ? [['Latency', 'nothing arrived']]
      : [...percentiles, ['Latency, longest', `${fine.format(latency.max)} ms`]]
  const counted = [
    ['Devices, connected', `${whole.format(figures.devices)}, ${whole.format(figures.connected)}`],
    ['Sent', whole.format(figures.sent)],
    ['Acknowledged', whole.format(figures.acknowledged)],
    ['Arrived', whole.format(figures.arrived)],
    ['Lost, QoS 1 and 2', `${whole.format(figures.lost)} (must be 0)`],
    ['Twice, QoS 2', `${whole.format(figures.twice)} (must be 0)`],
    [
      'Allowed',
      `QoS 0 lost ${whole.format(figures.missing0)}, QoS 1 twice ${whole.format(figures.repeated1)}, outcome unknown ${whole.format(figures.unsure)}, refused or not sent ${whole.format(figures.refused)}, held back ${whole.format(figures.heldBack)}`,
    ],
    ['Attempts to reconnect', whole.format(figures.attempts)],
    ...latencies,
  ]
  const faults = run.faults.map(({ text, at, back }) => [
    time(at),
    text,
    back === undefined ? 'not all' : `all after ${seconds(back)}`,
  ])
  const events = entries
    .filter(({ at }) => at >= run.began)
    .reverse()
    .map(({ at, text, count }) => [
      time(at),
      count > 1 ? `${text} (${whole.format(count)} times)` : text,
    ])
  const parts = [
    `<h1>mqwire simulator: report</h1><p class="verdict">${escaped(verdictOf(figures, isOver))}</p>`,
    failure === '' ? '' : `<p>${escaped(failure)}</p>`,
    '<h2>What was run</h2>',
    tableOf([
      ['Broker', broker],
      ['Began', time(run.began)],
      isOver ? ['Ended', time(end)] : ['Saved while running', time(end)],
      ['Took', seconds(end - run.began)],
      ...settings,
    ]),
    `<h2>Figures</h2>${tableOf(counted)}`,
    '<h2>Faults</h2>',
    faults.length === 0 ? '<p>None.</p>' : tableOf(faults, ['When', 'What', 'Devices back']),
    `<h2>Events</h2>${tableOf(events, ['When', 'What'])}`,
    description === undefined
      ? ''
      : `<h2>Description</h2><details><summary>JSON for mqwire simulate</summary><pre>${escaped(description)}</pre></details>`,
  ]
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>mqwire simulator: report</title><style>${style}</style></head><body>
${parts.filter((part) => part !== '').join('\n')}
</body></html>
`
}
