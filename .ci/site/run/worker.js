/**
 * Runs one program, in a worker of its own. On the port of `begin`, `{ program }` runs the text of a module, `{ publish }` publishes at its broker,
 * `{ stop }` is Ctrl-C.
 *
 * It reports `{ line, level }` for what the program prints, `{ filter }` for subscriptions, and `{ state }` once: `ended`, `failed` or `stopped`.
 * A program has ended when its module was evaluated and none of its clients and timers is left.
 */
import { limit } from '../limit.js'
import { broker, openClients, watching } from './broker.js'
import { consoleOf } from './console.js'
import { failure } from './inspect.js'

/** Posts to the page, once there is a program. */
let post
let evaluated = false
const shown = limit()

function print(level, text) {
  const line = shown(text)
  if (line !== undefined) post({ level, line })
}

Object.assign(console, consoleOf(print))

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

/** A timer of the program: a number in sums, and with the methods that it has in Node. */
class Timeout {
  constructor(set, isOnce, callback, delay, values) {
    this.id = set(() => {
      if (isOnce) clear(this)
      callback(...values)
    }, delay)
    timers.add(this.id)
  }

  ref() {
    return this
  }

  unref() {
    if (timers.delete(this.id)) settle()
    return this
  }

  [Symbol.toPrimitive]() {
    return this.id
  }
}
const timing =
  (set, isOnce) =>
  (callback, delay, ...values) =>
    new Timeout(set, isOnce, callback, delay, values)
const clear = (timer) => {
  if (timer === undefined || timer === null) return
  const id = Number(timer)
  clearTimeout(id)
  if (timers.delete(id)) settle()
}
// The timers of the program itself: those of clients and of the broker, which `timers.js` has, keep nothing running.
Object.assign(globalThis, {
  setTimeout: timing(setTimeout, true),
  setInterval: timing(setInterval, false),
  clearTimeout: clear,
  clearInterval: clear,
})

const isOver = () => evaluated && openClients() === 0 && timers.size === 0

// What the end of a client leads to may print, or begin something else.
function settle() {
  if (isOver()) setTimeout(() => isOver() && post({ state: 'ended' }), 30)
}

/** The line of the program where an error was made, as far as its stack says. */
function placeOf(error) {
  try {
    const [, line] = /\bblob:\S*?:(\d+):\d+/.exec(error?.stack) ?? []
    return line === undefined ? '' : ` (line ${line})`
  } catch {
    return ''
  }
}

function fail(error) {
  post({ level: 'error', line: failure(error).slice(0, 9000) + placeOf(error) })
  post({ state: 'failed' })
}

/** The page needs one filter, and of no great length. */
let filters = 0

watching.changed = settle
watching.subscribed = (filter) => {
  filters += 1
  if (filters <= 100 && filter.length <= 1000) post({ filter })
}
addEventListener('error', (event) => {
  event.preventDefault()
  fail(event.error ?? new Error(event.message))
})
addEventListener('unhandledrejection', (event) => {
  event.preventDefault()
  fail(event.reason)
})

async function run(program) {
  try {
    await import(URL.createObjectURL(new Blob([program], { type: 'text/javascript' })))
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

function handle({ data }) {
  if (data.program !== undefined) run(data.program)
  else if (data.publish !== undefined)
    try {
      broker.publish(data.publish)
    } catch (error) {
      print('error', failure(error))
    }
  else stop()
}

/** Called once, before there is a program, with the port to the page. */
export function begin(port) {
  post = port.postMessage.bind(port)
  globalThis.onmessage = null
  // The program cannot reach the page but by what it prints.
  for (let each = globalThis; each !== null; each = Object.getPrototypeOf(each))
    delete each.postMessage
  port.onmessage = handle
}
