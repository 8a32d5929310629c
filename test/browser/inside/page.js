/** The world in a page, and in a worker of it: `inside.page` and `inside.worker` have the same functions. One thing at a time in each. */
import { histories, historyOf } from './world.ts'

const page = { histories, historyOf }

const worker = new Worker('/inside/worker.js', { type: 'module' })

function ask(...question) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { result, failure } }) =>
      failure === undefined ? resolve(result) : reject(new Error(failure))
    worker.onerror = ({ message }) => reject(new Error(`the worker failed: ${message}`))
    worker.postMessage(question)
  })
}

const names = Object.keys(page)
globalThis.inside = {
  page,
  worker: Object.fromEntries(names.map((name) => [name, (...given) => ask(name, ...given)])),
}
