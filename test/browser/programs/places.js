/** Has the program run in each place that a page has for it. */
import { outcome } from './everything.js'

function answer(port, question, worker) {
  return new Promise((resolve) => {
    port.onmessage = ({ data }) => resolve(data)
    worker.onerror = ({ message }) => resolve({ failure: `the worker failed: ${message}` })
    port.postMessage(question)
  })
}

globalThis.places = {
  page: ({ url, name }) => outcome(url, name),
  async worker(question) {
    const worker = new Worker('/bundles/worker.js')
    const result = await answer(worker, question, worker)
    worker.terminate()
    return result
  },
  sharedWorker(question) {
    const worker = new SharedWorker('/bundles/shared-worker.js')
    return answer(worker.port, question, worker)
  },
  async serviceWorker(question) {
    const registration = await navigator.serviceWorker.register('/bundles/service-worker.js')
    const worker = registration.installing ?? registration.active
    while (worker.state !== 'activated')
      await new Promise((resolve) =>
        worker.addEventListener('statechange', resolve, { once: true }),
      )
    const { port1, port2 } = new MessageChannel()
    const answered = new Promise((resolve) => {
      port1.onmessage = ({ data }) => resolve(data)
    })
    worker.postMessage(question, [port2])
    return answered
  },
}
