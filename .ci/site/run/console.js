/** The console of a program: what Node's prints, in short. Nothing that a program prints makes it throw. */
import { attempt, formatted, printed } from './inspect.js'

/** Its methods, over a function that is called with a level and a text. */
export function consoleOf(print) {
  let indent = ''
  const counts = new Map()
  const times = new Map()
  const show = (level, text) => print(level, indent + text.replaceAll('\n', `\n${indent}`))
  const own = Object.fromEntries(
    ['debug', 'error', 'info', 'log', 'warn'].map((level) => [
      level,
      (...values) => show(level, formatted(values)),
    ]),
  )
  const open = (...values) => {
    if (values.length > 0) own.log(...values)
    if (indent.length < 40) indent += '  '
  }
  const elapsed = (name, values) =>
    show('log', `${name}: ${Math.round(performance.now() - times.get(name))} ms ${printed(values)}`)
  const labelled =
    (work) =>
    (label = 'default', ...values) =>
      work(
        attempt(() => String(label)),
        values,
      )
  return {
    ...own,
    dir: (value) => show('log', printed([value])),
    dirxml: own.log,
    table: (value) => show('log', printed([value])),
    trace: (...values) => show('error', `Trace: ${formatted(values)}`),
    group: open,
    groupCollapsed: open,
    groupEnd() {
      indent = indent.slice(2)
    },
    assert(condition, ...values) {
      if (!condition)
        show('error', `Assertion failed${values.length > 0 ? `: ${formatted(values)}` : ''}`)
    },
    count: labelled((name) => {
      counts.set(name, (counts.get(name) ?? 0) + 1)
      show('log', `${name}: ${counts.get(name)}`)
    }),
    countReset: labelled((name) => counts.delete(name)),
    time: labelled((name) => times.set(name, performance.now())),
    timeLog: labelled((name, values) => times.has(name) && elapsed(name, values)),
    timeEnd: labelled((name) => {
      if (times.has(name)) elapsed(name, [])
      times.delete(name)
    }),
  }
}
