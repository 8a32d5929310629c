/**
 * The features of the interop suites, in a page: the same code with a client of the browser, over WebSocket, on brokers that the test starts and ends.
 *
 * The test exposes `startBroker(setup)`, `controlBroker(number, what)` and `proxyTo(…)` to the page.
 */
import { features } from '../../real/features.ts'
import { inWorld } from '../../real/target.ts'

function brokerOf({ number, url }) {
  const control = (what) => () => globalThis.controlBroker(number, what)
  return {
    urls: { WebSocket: url, TCP: url },
    log: '',
    kill: control('kill'),
    shutDown: control('shutDown'),
    live: control('live'),
    stop: control('stop'),
  }
}

/** Brokers that several features share, by setup. */
const shared = new Map()

function sharedBroker(setup) {
  const known = shared.get(setup) ?? globalThis.startBroker(setup)
  shared.set(setup, known)
  return known
}

const strays = []
addEventListener('unhandledrejection', ({ reason }) => strays.push(String(reason?.stack ?? reason)))
addEventListener('error', ({ message }) => strays.push(message))

/** Runs the feature of this name: gives what failed, or nothing. */
async function run(name) {
  const feature = features.find((each) => each.name === name)
  const { setup = 'plain', ownBroker = false } = feature
  const broker = brokerOf(await (ownBroker ? globalThis.startBroker(setup) : sharedBroker(setup)))
  try {
    await inWorld(
      { broker: 'a broker', version: '', transport: 'WebSocket', lacks: {} },
      broker,
      feature.run,
    )
  } catch (error) {
    return `${error?.message}\n${error?.diff ?? ''}\n${error?.stack}`
  } finally {
    if (ownBroker) await broker.stop()
  }
  return strays.splice(0).join('\n') || undefined
}

globalThis.features = { run }
