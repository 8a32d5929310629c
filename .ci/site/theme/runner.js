/**
 * Runs a program in a worker, with what it prints and how it ends.
 *
 * A worker, and no frame: the browser ends it even in an endless loop, which would stop the page if it ran in a frame of the same process; and it cannot
 * reach the page. A sandboxed frame around it would have no origin, for which most static hosts do not serve modules; so a program shares the storage of
 * the site, which the site itself does not use. The worker comes from a blob, so the policy of the page holds for it as well: no connection and no
 * module from elsewhere. Import maps have no effect in workers: `run/strip.js` replaces the names of modules.
 */

/** Milliseconds between Stop and the end of a program that goes on. */
const patience = 1000

/** An address of the site. */
export const at = (name) => new URL(import.meta.env.BASE_URL + name, location.href).href

/** Loads a module that is not part of the pages. */
export const load = (name) => import(/* @vite-ignore */ at(`run/${name}.js`))

/**
 * Starts a program. Calls `on.line(level, text)`, `on.filter(filter)` and, once, `on.state(state)`: `ended`, `failed` or `stopped`.
 */
export function start(program, on) {
  const address = URL.createObjectURL(
    new Blob([`import ${JSON.stringify(at('run/worker.js'))}`], { type: 'text/javascript' }),
  )
  const worker = new Worker(address, { type: 'module', name: 'program' })
  let isOver = false
  const over = (state) => {
    if (isOver) return
    isOver = true
    worker.terminate()
    URL.revokeObjectURL(address)
    on.state(state)
  }
  worker.onmessage = ({ data }) => {
    if (isOver) return
    if (data.line !== undefined) on.line(data.level, data.line)
    else if (data.filter !== undefined) on.filter(data.filter)
    else over(data.state)
  }
  // The worker itself cannot be loaded: errors of programs are caught in it.
  worker.onerror = () => {
    on.line('error', 'The parts of the page that run programs cannot be loaded.')
    over('failed')
  }
  worker.postMessage({ program })
  return {
    publish: (message) => worker.postMessage({ publish: message }),
    stop() {
      worker.postMessage({ stop: true })
      setTimeout(over, patience, 'stopped')
    },
    /** Ends it at once. */
    kill: () => over('stopped'),
  }
}
