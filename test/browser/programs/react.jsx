/** Components that use the hooks of mqwire/react, in StrictMode, for the test to mount, render again, refresh and unmount. */
import { refresh } from './refresh.js'

// React comes after it.

import {
  MqttProvider,
  useClient,
  useConnectionState,
  useLatest,
  useLatestValues,
  usePublish,
  useSubscription,
} from 'mqwire/react'
import * as mq from 'mqwire/typed'
import { StrictMode, useEffect } from 'react'
import { createRoot } from 'react-dom/client'

let root
let renders = 0
let frames = 0
const frame = () => {
  frames += 1
  requestAnimationFrame(frame)
}
frame()
const seen = { clients: new Set(), publishers: new Set(), effects: 0 }

function Texts({ id, filter }) {
  const { messages, error } = useSubscription(filter, { qos: 1, limit: 5 })
  return (
    <p id={id}>
      {error === undefined ? messages.map((message) => message.text()).join() : error.code}
    </p>
  )
}

/** A version of the component in the middle; `signature` stands for the hooks that it uses, as the compiler would note them. */
function makeView(version, signature) {
  const sign = refresh.createSignatureFunctionForTransform()
  function View({ filter }) {
    sign()
    renders += 1
    const state = useConnectionState()
    const latest = useLatest(filter)
    const client = useClient()
    const publish = usePublish()
    if (client !== undefined) seen.clients.add(client)
    seen.publishers.add(publish)
    useEffect(() => {
      seen.effects += 1
    }, [])
    return (
      <div>
        <p id="version">{version}</p>
        <p id="state">{state}</p>
        <p id="latest">{latest?.text() ?? 'none'}</p>
        <Texts id="one" filter={filter} />
        <Texts id="two" filter={filter} />
      </div>
    )
  }
  sign(View, signature, false, () => [])
  refresh.register(View, 'View')
  return View
}

let View = makeView('first', 'a')

const level = mq.channel('{page}/{broker}/{count}/level/{id}', mq.number())

/** A table of the latest values, with new literals in every render. */
function Levels({ id, page, broker, count }) {
  const values = useLatestValues(level, { page, broker, count }, { limit: 10 })
  return (
    <p id={id}>{[...values.values()].map(({ params, value }) => `${params.id}=${value}`).join()}</p>
  )
}

/** What is rendered last, to render it once more with new literals. */
let last

globalThis.react = {
  mount(...values) {
    root = createRoot(document.getElementById('root'))
    globalThis.react.render(...values)
  },
  render(url, clientId, filter, reconnect = true) {
    last = () => (
      <StrictMode>
        <MqttProvider url={url} options={{ clientId, keepAlive: 20, cleanStart: false, reconnect }}>
          <View filter={filter} />
        </MqttProvider>
      </StrictMode>
    )
    root.render(last())
  },
  again: () => root.render(last()),
  levels(url, clientId, topic, second) {
    const [page, broker, count] = topic.split('/')
    const where = { page, broker, count }
    root.render(
      <StrictMode>
        <MqttProvider url={url} options={{ clientId, keepAlive: 20, cleanStart: false }}>
          <Levels id="left" {...where} />
          {second && <Levels id="right" {...where} />}
        </MqttProvider>
      </StrictMode>,
    )
  },
  unmount: () => root.unmount(),
  refresh(version, signature) {
    View = makeView(version, signature)
    return refresh.performReactRefresh() !== null
  },
  publish: (topic, text) =>
    [...seen.publishers]
      .at(-1)(topic, text, { qos: 1 })
      .then(({ reasonCode }) => reasonCode),
  facts: () => ({
    renders,
    frames,
    effects: seen.effects,
    clients: seen.clients.size,
    publishers: seen.publishers.size,
  }),
}
