/**
 * `mqwire watch`: a live tree of topics over the whole screen.
 */
import { emitKeypressEvents, type Key } from 'node:readline'
import { Command } from 'commander'
import type { Client, QoS } from 'mqwire'
import { type ConnectionValues, option, withClient, withConnection } from '../common/connection.js'
import { assertGranted, Ending } from '../common/ending.js'
import { beQuiet, coloursOf, write } from '../common/terminal.js'
import { filters, qos } from '../common/values.js'
import { draw, rowsOf, treeRows, type View } from './screen.js'
import { Topics } from './topics.js'

interface WatchValues extends ConnectionValues {
  readonly qos: QoS
}

const examples = `
Keys: ↑ ↓ PageUp PageDown move, → or Enter opens a level, ← closes it, / searches, f freezes the screen, q ends.
Without a terminal, it prints the totals every five seconds.

Examples:
  mqwire watch
  mqwire watch 'plant/#' --url mqtts://broker.example
`

/** Defines the command. */
export function watchCommand(signal: AbortSignal): Command {
  const command = new Command('watch')
    .description('show topics as a live tree')
    .argument('[filters...]', "topic filters (default: '#')", filters as never)
    .addOption(option('-q, --qos <qos>', 'highest QoS', qos, 0))
  return withConnection(command)
    .addHelpText('after', examples)
    .action((filters: readonly string[], values: WatchValues) =>
      withClient(values, signal, (client) =>
        watch(client, filters.length === 0 ? ['#'] : filters, values, signal),
      ),
    )
}

async function watch(
  client: Client,
  filters: readonly string[],
  values: WatchValues,
  signal: AbortSignal,
): Promise<void> {
  const topics = new Topics()
  const handling = await client.listen(
    filters,
    ({ topic, payload, retain }) =>
      topics.add(topic, { bytes: payload, size: payload.length, retain, time: performance.now() }),
    { qos: values.qos, lifetime: 'borrowed', buffer: 100_000 },
  )
  assertGranted(handling.granted)
  const end = new AbortController()
  const over = AbortSignal.any([signal, end.signal])
  const ended = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()))
  if (!process.stdout.isTTY || !process.stdin.isTTY) {
    const timer = setInterval(() => {
      void write(`${topics.root.count} messages, ${topics.size} levels of topics\n`)
    }, 5000)
    await Promise.race([ended, handling.done]).finally(() => clearInterval(timer))
    return
  }
  const screen = new Screen(topics, () => client.state, end)
  try {
    screen.begin()
    await Promise.race([ended, handling.done])
  } finally {
    screen.end()
  }
  if (screen.isInterrupted) throw new Ending('interrupted', 'interrupted')
}

/** Milliseconds between two drawings. */
const frame = 200

const enterScreen = '\u001b[?1049h\u001b[?25l'
const leaveScreen = '\u001b[?25h\u001b[?1049l'

/** The terminal while `watch` runs. */
class Screen {
  readonly #topics: Topics
  readonly #stateOf: () => string
  readonly #end: AbortController
  readonly #view: View = { selected: '', top: 0, search: undefined, frozen: false }
  readonly #colours = coloursOf(process.stdout)
  #timer: NodeJS.Timeout | undefined
  #isTyping = false
  isInterrupted = false

  constructor(topics: Topics, stateOf: () => string, end: AbortController) {
    this.#topics = topics
    this.#stateOf = stateOf
    this.#end = end
  }

  begin(): void {
    // What would be said while the screen is drawn would spoil it.
    beQuiet()
    process.stdout.write(enterScreen)
    process.once('exit', this.#restore)
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdin.on('keypress', this.#press)
    process.stdout.on('resize', this.#draw)
    this.#timer = setInterval(() => {
      if (!this.#view.frozen) this.#draw()
    }, frame)
    this.#draw()
  }

  end(): void {
    clearInterval(this.#timer)
    process.stdin.off('keypress', this.#press)
    process.stdout.off('resize', this.#draw)
    process.stdin.setRawMode(false)
    process.stdin.pause()
    process.stdout.off('resize', this.#draw)
    process.off('exit', this.#restore)
    this.#restore()
  }

  readonly #restore = (): void => void process.stdout.write(leaveScreen)

  readonly #draw = (): void => {
    if (this.#view.selected === '')
      this.#view.selected = rowsOf(this.#topics, this.#view)[0]?.topic.path ?? ''
    const { columns: width = 80, rows: height = 24 } = process.stdout
    const lines = draw(this.#topics, this.#view, {
      width,
      height,
      now: performance.now(),
      colours: this.#colours,
      status: this.#stateOf(),
    })
    process.stdout.write(`\u001b[H${lines.slice(0, height).join('\u001b[K\r\n')}\u001b[J`)
  }

  readonly #press = (text: string | undefined, key: Key): void => {
    if (key.ctrl && key.name === 'c') {
      this.isInterrupted = true
      return this.#end.abort()
    }
    if (this.#isTyping) this.#type(text, key)
    else if (key.name === 'q') return this.#end.abort()
    else if (text === '/') {
      this.#isTyping = true
      this.#view.search = ''
    } else if (key.name === 'escape') this.#view.search = undefined
    else if (key.name === 'f') this.#view.frozen = !this.#view.frozen
    else this.#move(key.name ?? '')
    this.#draw()
  }

  #type(text: string | undefined, key: Key): void {
    const view = this.#view
    if (key.name === 'escape') view.search = undefined
    if (key.name === 'escape' || key.name === 'return') this.#isTyping = false
    else if (key.name === 'backspace') view.search = view.search?.slice(0, -1)
    else if (text !== undefined && text >= ' ') view.search = `${view.search ?? ''}${text}`
    view.top = 0
  }

  #move(name: string): void {
    const view = this.#view
    const rows = rowsOf(this.#topics, view)
    const at = rows.findIndex(({ topic }) => topic.path === view.selected)
    const topic = rows[at]?.topic
    const space = treeRows(process.stdout.rows ?? 24)
    if ((name === 'right' || name === 'return') && topic !== undefined) topic.isOpen = true
    else if (name === 'left' && topic !== undefined) {
      if (topic.isOpen) topic.isOpen = false
      else if (topic.parent?.parent !== undefined) view.selected = topic.parent.path
    }
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      down: 1,
      pageup: -space,
      pagedown: space,
      home: -1e9,
      end: 1e9,
    }
    const next = Math.min(rows.length - 1, Math.max(0, at + (steps[name] ?? 0)))
    if (name in steps) view.selected = rows[next]?.topic.path ?? ''
    const shown = rows.findIndex((row) => row.topic.path === view.selected)
    if (shown < view.top) view.top = Math.max(0, shown)
    if (shown >= view.top + space) view.top = shown - space + 1
  }
}
