/**
 * The dashboard: what a broker sends, live. It ties the connection, the memory and the views together; start reading at `connection.js`.
 *
 * Messages only ever go into memory; what is seen is drawn four times a second, whatever comes in, and not at all while nobody looks.
 */
import { Connection } from './connection.js'
import { short } from './model/payload.js'
import { interval, Recorder } from './model/recorder.js'
import { limits as seriesLimits } from './model/series.js'
import { limits as topicLimits } from './model/topics.js'
import { filtersIn, readSettings, writeSettings } from './settings.js'
import { Charts } from './view/charts.js'
import { ConnectionPanel } from './view/connection-panel.js'
import { byId, setText } from './view/dom.js'
import { setUpFiles } from './view/files.js'
import { bounds, Inspector } from './view/inspector.js'
import { setUpKeys } from './view/keys.js'
import { setUpPublish } from './view/publish-box.js'
import { showQueue } from './view/queue-progress.js'
import { setUpRetained } from './view/retained-dialog.js'
import { setUpTheme, wantsLessMotion } from './view/theme.js'
import { TopicTable } from './view/topic-table.js'

/** Milliseconds between two drawings of the charts for those who want less motion. */
const calm = 2000

const settings = readSettings(location.search)
const recorder = new Recorder()
const connection = new Connection({
  changed(view) {
    if (view.state !== 'connected') recorder.interrupt()
    panel.show(view)
  },
  received: (messages) => recorder.received(messages, Date.now()),
  noted: (text) => panel.note(text),
  queued: showQueue,
})
const panel = new ConnectionPanel(connection, { settings, submitted: open })
const charts = new Charts(recorder)
const publish = setUpPublish(connection, { topic: settings.publish })
const inspector = new Inspector(recorder, {
  charted: (topic, name) => charts.show(topic, name),
  again: publish.again,
})
const table = new TopicTable(recorder, {
  picked(topic, below) {
    inspector.inspect(topic, below)
    if (!below) publish.suggest(topic)
  },
})
setUpKeys({ p: publish.focus })
setUpTheme(() => charts.recolour())
setUpRetained(connection, {
  suggested() {
    const { selected, selectsBelow } = recorder
    const [first] = filtersIn(connection.view.filter ?? '#', 0)
    if (selected === undefined) return { filter: first.filter, looks: false }
    return { filter: `${selected}${selectsBelow ? '/#' : ''}`, looks: true }
  },
})
setUpFiles(recorder, {
  listed: () => table.listed,
  opened() {
    connection.close()
    source = ''
    recorder.clear()
    inspector.inspect(undefined)
  },
})

/** What the topics on the page came from. */
let source = ''

function open(wanted) {
  const begun = connection.open(wanted)
  setText(byId('file-note'), '')
  // What another broker or another filter brought does not stay.
  const next = JSON.stringify([wanted.url, wanted.filter])
  if (source !== next) {
    source = next
    recorder.clear()
    inspector.inspect(undefined)
    draw()
  }
  if (!begun) return
  panel.remember(wanted)
  // Loading the page again connects again; a password has to be typed again.
  history.replaceState(null, '', writeSettings({ ...wanted, publish: settings.publish }))
}

let chartsDrawn = 0
function draw() {
  const now = performance.now()
  const paused = recorder.missed !== undefined
  setText(
    byId('missed'),
    paused ? `${short(recorder.missed)} messages since the pause, not kept` : '',
  )
  panel.tick()
  panel.figures(recorder)
  if (!paused && (!wantsLessMotion() || now - chartsDrawn >= calm)) {
    chartsDrawn = now
    charts.draw()
  }
  table.draw()
  inspector.draw()
}

let asked = false
setInterval(() => {
  recorder.tick(Date.now())
  if (asked || document.hidden) return
  asked = true
  requestAnimationFrame(() => {
    asked = false
    draw()
  })
}, interval)

const pause = byId('pause')
pause.addEventListener('click', () => {
  if (recorder.missed === undefined) recorder.pause()
  else recorder.resume()
  const paused = recorder.missed !== undefined
  pause.ariaPressed = String(paused)
  setText(pause, paused ? 'Resume' : 'Pause')
  draw()
})
byId('clear').addEventListener('click', () => {
  recorder.clear()
  setText(byId('file-note'), '')
  draw()
})

// A page that may come back keeps its client, which then makes the connection good.
addEventListener('pagehide', ({ persisted }) => {
  if (!persisted) connection.close()
})

setText(
  byId('bounds'),
  `${bounds}; the table has ${short(topicLimits.topics)} topics, a chart ${seriesLimits.series} lines over five minutes, sampled four times a second.`,
)
draw()
if (settings.url !== '') {
  const resumed = panel.resumed()
  if (resumed !== undefined) open(resumed)
}

// A field that is wrong is to be seen, also where its part of the page is folded.
addEventListener(
  'invalid',
  ({ target }) => {
    const fold = target.closest('details')
    if (fold !== null) fold.open = true
  },
  true,
)
