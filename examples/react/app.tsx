/** A small page of components that share one client: where the connection stands, the last messages, and a form that publishes. */
import { MqttError } from 'mqwire'
import {
  MqttProvider,
  useConnectionState,
  useLatest,
  usePublish,
  useSubscription,
  useTrouble,
} from 'mqwire/react'
import { useState } from 'react'

function State() {
  return <p role="status">Client: {useConnectionState()}</p>
}

/** Says what to do where no broker answers. */
function Trouble({ url }: { readonly url: string }) {
  const trouble = useTrouble()
  if (trouble === undefined) return undefined
  return (
    <p role="alert" className="problem">
      There is no broker at {url}: {trouble.message}. It is tried again and again.{' '}
      <code>npm run react</code> brings a broker along; another one stands in the address of this
      page, as <code>?url=ws://…</code>
    </p>
  )
}

function Clock() {
  const message = useLatest('react/clock')
  return <p>Latest on react/clock: {message === undefined ? 'none yet' : message.text()}</p>
}

function Messages({ filter }: { readonly filter: string }) {
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
  async function send(form: FormData) {
    try {
      await publish(`react/${form.get('topic')}`, String(form.get('text')), { qos: 1 })
      setOutcome('Acknowledged.')
    } catch (error) {
      setOutcome(error instanceof MqttError ? `${error.code}: ${error.outcome}` : String(error))
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
export function App({ url }: { readonly url: string }) {
  return (
    <MqttProvider url={url} options={{ keepAlive: 20 }}>
      <header className="bar">
        <h1>
          mqwire <span>with React</span>
        </h1>
        <State />
      </header>
      <main>
        <p className="lead">
          Four components share one client. Publish to react/clock: the line, the list and every
          other window that is open show it at once.
        </p>
        <Trouble url={url} />
        <section className="card">
          <Clock />
          <Publish />
        </section>
        <section className="card">
          <Messages filter="react/#" />
        </section>
      </main>
    </MqttProvider>
  )
}
