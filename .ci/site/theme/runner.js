/**
 * Runs a program in a worker, with what it prints and how it ends.
 *
 * A worker, and no frame: the browser ends it even in an endless loop, which would stop the page if it ran in a frame of the same process; and it cannot
 * reach the page. A sandboxed frame around it would have no origin, for which most static hosts do not serve modules; so a program shares the storage of
 * the site, which the site itself does not use. The worker comes from a blob, so the policy of the page holds for it as well: nothing is loaded from
 * another site, and nothing sent to one. Import maps have no effect in workers: `run/strip.js` replaces the names of modules.
 */

import { limit } from '../limit.js'

/** Messages that a worker may send: its own limits leave it far below. */
const mostMessages = 10_000

/** Milliseconds between Stop and the end of a program that goes on. */
const patience = 1000

const states = ['ended', 'failed', 'stopped']
const levelOf = (level) => (['debug', 'error', 'info', 'warn'].includes(level) ? level : 'log')

/** What the worker begins with. A static import would be a worker for the policy, which takes none but from blobs. */
const beginning = (address) =>
  `onmessage = ({ ports }) => import(${JSON.stringify(address)}).then(({ begin }) => begin(ports[0]), reportError)`

/** An address of the site. */
export const at = (name) => new URL(import.meta.env.BASE_URL + name, location.href).href

/** Loads a module that is not part of the pages. */
export const load = (name) => import(/* @vite-ignore */ at(`run/${name}.js`))

/**
 * Starts a program. Calls `on.line(level, text)`, `on.filter(filter)` and, once, `on.state(state)`: `ended`, `failed` or `stopped`.
 */
export function start(program, on) {
  const address = URL.createObjectURL(
    new Blob([beginning(at('run/worker.js'))], { type: 'text/javascript' }),
  )
  const worker = new Worker(address, { type: 'module', name: 'program' })
  const { port1: port, port2 } = new MessageChannel()
  // Wider than that of the worker, which ends with an error even when the output is full.
  const shown = limit(1.1)
  let messages = 0
  let isOver = false
  const over = (state) => {
    if (isOver) return
    isOver = true
    worker.terminate()
    port.close()
    URL.revokeObjectURL(address)
    on.state(state)
  }
  const print = (level, text) => {
    const line = shown(text)
    if (line !== undefined) on.line(level, line)
  }
  // Only the worker has the other port. What comes from there is checked all the same, because a program may have found a way into it.
  port.onmessage = ({ data }) => {
    if (isOver) return
    messages += 1
    if (messages > mostMessages) {
      on.line('error', 'The program was ended: it sends too much to the page.')
      over('failed')
    } else if (typeof data?.line === 'string') print(levelOf(data.level), data.line)
    else if (typeof data?.filter === 'string') on.filter(data.filter.slice(0, 1000))
    else if (states.includes(data?.state)) over(data.state)
  }
  // The worker itself cannot be loaded: errors of programs are caught in it.
  worker.onerror = () => {
    on.line('error', 'The parts of the page that run programs cannot be loaded.')
    over('failed')
  }
  worker.postMessage(undefined, [port2])
  port.postMessage({ program })
  return {
    publish: (message) => port.postMessage({ publish: message }),
    stop() {
      port.postMessage({ stop: true })
      setTimeout(over, patience, 'stopped')
    },
    /** Ends it at once. */
    kill: () => over('stopped'),
  }
}
