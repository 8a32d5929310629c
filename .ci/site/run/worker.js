/**
 * Runs one program, in a worker of its own: `{ program }` runs the text of a module, `{ publish }` publishes at its broker, `{ stop }` is Ctrl-C.
 *
 * It reports `{ line, level }` for what the program prints, `{ filter }` for each subscription, and `{ state }` once: `ended`, `failed` or `stopped`.
 * A program has ended when its module was evaluated and none of its clients and timers is left.
 */
import { broker, openClients, watching } from './broker.js'
import { failure, printed } from './inspect.js'

/** After so many lines nothing more is printed: a page that shows them all would stand still. */
const mostLines = 1000
const post = self.postMessage.bind(self)
let lines = 0
let evaluated = false

function print(level, line) {
  lines += 1
  if (lines <= mostLines) post({ level, line: line.slice(0, 10_000) })
  else if (lines === mostLines + 1)
    post({ level: 'warn', line: `Only the first ${mostLines} lines are shown.` })
}

for (const level of ['debug', 'error', 'info', 'log', 'warn'])
  console[level] = (...values) => print(level, printed(values))

const handlers = new Map()
const once = (signal, handler) => void handlers.set(signal, handler)

/** What small programs use of Node: settings that are absent, and Ctrl-C. */
globalThis.process = { env: {}, once, on: once }
/** What small programs use of a page. */
globalThis.document = {
  set title(text) {
    print('log', `document.title: ${text}`)
  },
}

const timers = new Set()
const timing =
  (set, isOnce) =>
  (callback, delay, ...values) => {
    const timer = set(() => {
      if (isOnce) clear(timer)
      callback(...values)
    }, delay)
    timers.add(timer)
    return timer
  }
const clear = (timer) => {
  clearTimeout(timer)
  if (timers.delete(timer)) settle()
}
/** The timers of the program itself: those of clients and of the broker keep nothing running. */
globalThis.ownTimers = {
  setTimeout: timing(setTimeout, true),
  setInterval: timing(setInterval, false),
  clearTimeout: clear,
  clearInterval: clear,
}

const isOver = () => evaluated && openClients() === 0 && timers.size === 0

// What the end of a client leads to may print, or begin something else.
function settle() {
  if (isOver()) setTimeout(() => isOver() && post({ state: 'ended' }), 30)
}

/** The line of the program where an error was made, as far as its stack says. */
function placeOf(error) {
  const [, line] = /\bblob:\S*?:(\d+):\d+/.exec(error?.stack) ?? []
  return line === undefined ? '' : ` (line ${line})`
}

function fail(error) {
  print('error', failure(error) + placeOf(error))
  post({ state: 'failed' })
}

watching.changed = settle
watching.subscribed = (filter) => post({ filter })
addEventListener('error', (event) => {
  event.preventDefault()
  fail(event.error ?? new Error(event.message))
})
addEventListener('unhandledrejection', (event) => {
  event.preventDefault()
  fail(event.reason)
})

async function run(program) {
  const names = Object.keys(globalThis.ownTimers).join(', ')
  const text = `const { ${names} } = globalThis.ownTimers; ${program}`
  try {
    await import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
    evaluated = true
    settle()
  } catch (error) {
    fail(error)
  }
}

function stop() {
  const handler = handlers.get('SIGINT') ?? handlers.get('SIGTERM')
  if (handler === undefined) post({ state: 'stopped' })
  else handler()
}

addEventListener('message', ({ data }) => {
  if (data.program !== undefined) run(data.program)
  else if (data.publish !== undefined)
    try {
      broker.publish(data.publish)
    } catch (error) {
      print('error', failure(error))
    }
  else stop()
})
