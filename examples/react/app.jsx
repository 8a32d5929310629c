/** A small page of components that share one client: where the connection stands, the last messages, and a form that publishes. */
import { useState } from 'react'
import { MqttProvider, useConnectionState, useLatest, usePublish, useSubscription } from './mqtt.jsx'

function State() {
  return <p role="status">Client: {useConnectionState()}</p>
}

function Clock() {
  const message = useLatest('react/clock')
  return <p>Latest on react/clock: {message === undefined ? 'none yet' : message.text()}</p>
}

function Messages({ filter }) {
  const { messages, error } = useSubscription(filter, { qos: 1, limit: 20 })
  if (error !== undefined) return <p role="alert">{error.message}</p>
  return (
    <ol aria-label={`Messages on ${filter}`}>
      {messages.map((message, index) => (
        // Messages have no identity of their own: the list only ever moves.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <li key={index}>
          {message.topic}: {message.text()}
        </li>
      ))}
    </ol>
  )
}

function Publish() {
  const publish = usePublish()
  const [outcome, setOutcome] = useState('')
  async function send(form) {
    try {
      await publish(`react/${form.get('topic')}`, form.get('text'), { qos: 1 })
      setOutcome('Acknowledged.')
    } catch (error) {
      setOutcome(`${error.code}: ${error.outcome}`)
    }
  }
  return (
    <form action={send}>
      <label>
        react/ <input name="topic" defaultValue="clock" required />
      </label>
      <label>
        Message <input name="text" defaultValue="12:00" />
      </label>
      <button type="submit">Publish</button>
      <output>{outcome}</output>
    </form>
  )
}

/** The whole page. */
export function App({ url }) {
  return (
    <MqttProvider url={url} options={{ keepAlive: 20 }}>
      <h1>MQTT with React</h1>
      <State />
      <Clock />
      <Publish />
      <Messages filter="react/#" />
    </MqttProvider>
  )
}
