/**
 * Timers and a date that stand still until they are told to go on, for test files that ask `vi` for them.
 *
 * Timers that are due run in order, each after all that the one before has set off. Real ones that are under way are left alone.
 */
const names = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date']

let real
let now = 0
let began = 0
let numbers = 0
const timers = new Map()

/** Lets everything happen that takes no time. */
function turn() {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}

function add(callback, delay = 0, given = [], interval = undefined) {
  numbers += 1
  timers.set(numbers, {
    at: now + Math.max(0, delay),
    number: numbers,
    run: () => callback(...given),
    interval,
  })
  return numbers
}

class StandingDate extends Date {
  constructor(...given) {
    if (given.length === 0) super(now)
    else super(...given)
  }

  static now() {
    return now
  }
}

const stand = {
  setTimeout: (callback, delay, ...given) => add(callback, delay, given),
  setInterval: (callback, delay, ...given) => add(callback, delay, given, Math.max(1, delay)),
  clearTimeout: (number) => void timers.delete(number),
  clearInterval: (number) => void timers.delete(number),
  Date: StandingDate,
}

function next(until) {
  const due = [...timers.values()].filter(({ at }) => at <= until)
  return due.sort((one, other) => one.at - other.at || one.number - other.number)[0]
}

async function runUntil(until) {
  await turn()
  for (let timer = next(until); timer !== undefined; timer = next(until)) {
    now = Math.max(now, timer.at)
    timers.delete(timer.number)
    if (timer.interval !== undefined)
      timers.set(timer.number, { ...timer, at: timer.at + timer.interval })
    timer.run()
    await turn()
  }
}

/** As `Date` moves: no test sets that here. */
const standingPerformance = () => now - began

export const fakeTimers = {
  useFakeTimers({ now: start = Date.now() } = {}) {
    real ??= Object.fromEntries(names.map((name) => [name, globalThis[name]]))
    now = Number(start)
    began = now
    performance.now = standingPerformance
    timers.clear()
    Object.assign(globalThis, stand)
  },
  useRealTimers() {
    if (real !== undefined) Object.assign(globalThis, real)
    // The one of the prototype again.
    delete performance.now
    real = undefined
  },
  async advanceTimersByTimeAsync(milliseconds) {
    const until = now + milliseconds
    await runUntil(until)
    now = until
  },
  runAllTimersAsync: () => runUntil(Number.POSITIVE_INFINITY),
}
