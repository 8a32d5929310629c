/** The runner in a page, and in a worker of it: `inside.page` and `inside.worker` have the same functions. One thing at a time in each. */
import { runFile } from './run.js'
import { histories, historyOf } from './world.ts'

const worker = new Worker('/inside/worker.js', { type: 'module' })

function ask(...question) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { result, failure } }) =>
      failure === undefined ? resolve(result) : reject(new Error(failure))
    worker.onerror = ({ message }) => reject(new Error(`the worker failed: ${message}`))
    worker.postMessage(question)
  })
}

globalThis.inside = {
  page: { runFile, histories, historyOf },
  worker: Object.fromEntries(
    ['runFile', 'histories', 'historyOf'].map((name) => [name, (...given) => ask(name, ...given)]),
  ),
}
