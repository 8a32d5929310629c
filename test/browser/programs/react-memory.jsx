/**
 * Components over a broker in the same page: each function is a scenario that gives what was seen.
 */
import { MqttProvider, useConnectionState, useLatest, useLatestValues, useSubscription, useTrouble } from 'mqwire/react'
import { MemoryBroker } from 'mqwire/testing'
import * as mq from 'mqwire/typed'
import { Component, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

const level = mq.channel('tank/{id}/level', mq.number(), { qos: 1 })
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(holds, what) {
  for (let time = 0; time < 400; time += 1) {
    if (await holds()) return
    await pause(10)
  }
  throw new Error(`not seen: ${what}`)
}

let count = 0

/** A page with a broker of its own. */
function setting(hooks = {}) {
  const broker = new MemoryBroker(hooks)
  const url = { url: `memory://broker-${++count}`, transport: broker.dial }
  const place = document.body.appendChild(document.createElement('div'))
  const root = createRoot(place)
  const render = (children, options) =>
    root.render(
      <MqttProvider url={url} options={{ reconnect: { backoff: () => 20 }, ...options }}>
        {children}
      </MqttProvider>,
    )
  const publish = (topic, payload, retain = false) => broker.publish({ topic, payload: new TextEncoder().encode(payload), qos: 1, retain })
  return { broker, place, root, render, publish, shows: (text) => until(() => place.textContent === text, `${text}; there is ${place.textContent}`) }
}

const State = () => `${useConnectionState()} ${useTrouble()?.code ?? ''}`

/** Shows what a component throws. */
class Boundary extends Component {
  state = {}
  static getDerivedStateFromError = (error) => ({ error })
  render() {
    return this.state.error === undefined ? this.props.children : this.state.error.code
  }
}

globalThis.react = {
  /** A wrong password, then the right one, as the same component has them. */
  async password() {
    const { render, shows } = setting({ authenticate: ({ password }) => new TextDecoder().decode(password) === 'right' || 0x86 })
    const show = (password) => render(<State />, { clientId: 'me', username: 'me', password })
    show('wrong')
    await shows('closed ERR_CONNECT_REFUSED')
    show('right')
    await shows('connected ')
  },

  /** Another key of the provider tries again with what a function gives now. */
  async credentials() {
    const { broker, root } = setting({ authenticate: ({ password }) => new TextDecoder().decode(password) === 'right' || 0x86 })
    const url = { url: `memory://broker-${++count}`, transport: broker.dial }
    const place = document.body.appendChild(document.createElement('div'))
    const own = createRoot(place)
    root.unmount()
    for (const [password, text] of [
      ['wrong', 'closed ERR_CONNECT_REFUSED'],
      ['right', 'connected '],
    ]) {
      own.render(
        <MqttProvider key={password} url={url} options={{ credentials: () => ({ username: 'me', password }), reconnect: { decide: () => 'stop' } }}>
          <State />
        </MqttProvider>,
      )
      await until(() => place.textContent === text, `${text}; there is ${place.textContent}`)
    }
  },

  /** Renders of a component that reads, in so many frames of a flood. */
  async renders() {
    const { broker, render, publish } = setting()
    let renders = 0
    let frames = 0
    function Table() {
      renders += 1
      return useLatestValues(level).size
    }
    render(<Table />)
    await until(() => broker.clients.size === 1 && renders > 0, 'the client')
    await pause(100)
    const frame = () => {
      frames += 1
      requestAnimationFrame(frame)
    }
    frame()
    const [before, first] = [renders, frames]
    for (let time = 0; time < 100; time += 1) {
      for (let id = 0; id < 20; id += 1) publish(`tank/${id}/level`, String(time))
      await pause(2)
    }
    await pause(50)
    return { renders: renders - before, frames: frames - first }
  },

  /** Renders of 2,000 rows that share one map and select their own value of it, while 20 messages come. */
  async rows() {
    const { place, render, publish } = setting()
    let renders = 0
    let asked = 0
    function Row({ id }) {
      renders += 1
      const value = useLatestValues(level, {}, { select: (values) => values.get(`tank/${id}/level`)?.value })
      return <i>{value ?? '-'}</i>
    }
    const Waits = () => {
      asked += 1
      return useLatestValues(level, { select: ({ isPending }) => isPending }) ? 'asked' : 'granted'
    }
    render([<Waits key="waits" />, ...Array.from({ length: 2000 }, (_, id) => <Row key={id} id={id} />)])
    await until(() => place.textContent.startsWith('granted'), 'the grant')
    const before = [renders, asked]
    for (let id = 0; id < 20; id += 1) {
      publish(`tank/${id * 100}/level`, String(id))
      await until(() => place.querySelectorAll('i')[id * 100].textContent === String(id), `the value ${id}`)
    }
    return { renders: renders - before[0], asked: asked - before[1] }
  },

  /** A list that is made in each `select`, with what says that two are the same. */
  async equal() {
    const { render, publish, shows } = setting()
    const same = (one, other) => one.join() === other.join()
    let renders = 0
    function High() {
      renders += 1
      const select = (shown) => [shown.isPending, ...shown.map((message) => message.text()).filter((text) => Number(text) > 9)]
      return useSubscription('tank/+/level', { select, equal: same }).join()
    }
    render(<High />)
    await shows('false')
    const before = renders
    publish('tank/1/level', '10')
    await shows('false,10')
    for (let n = 0; n < 5; n += 1) {
      publish('tank/1/level', String(n))
      await pause(40)
    }
    publish('tank/1/level', '11')
    await shows('false,10,11')
    return renders - before
  },

  /** What is not enabled is not subscribed to, and shows what it showed. */
  async enabled(strict = true) {
    const asked = []
    const { render, publish, shows } = setting({ authorizeSubscribe: (_client, { filter }) => asked.push(filter) > 0 })
    const Values = ({ enabled }) => {
      const { size, isPending } = useLatestValues(level, { enabled })
      return ` values ${size} ${isPending}`
    }
    const Texts = ({ enabled }) => {
      const { messages, isPending, error } = useSubscription('tank/+/level', { enabled })
      return ` texts ${messages.length} ${isPending} ${error}`
    }
    const Last = ({ enabled }) => ` last ${useLatest('tank/+/level', { enabled })?.text()}`
    const show = (enabled) => {
      const all = [<State key="s" />, <Values key="v" enabled={enabled} />, <Texts key="t" enabled={enabled} />, <Last key="l" enabled={enabled} />]
      render(strict ? <StrictMode>{all}</StrictMode> : all)
    }
    show(false)
    await shows('connected  values 0 false texts 0 false undefined last undefined')
    await pause(50)
    if (asked.length > 0) throw new Error(`asked for ${asked}`)
    show(true)
    await shows('connected  values 0 false texts 0 false undefined last undefined')
    await until(() => asked.length > 0, 'SUBSCRIBE')
    await pause(50)
    publish('tank/1/level', '1')
    await shows('connected  values 1 false texts 1 false undefined last 1')
    show(false)
    // Longer than anything is kept that nobody uses.
    await pause(500)
    publish('tank/2/level', '2')
    await pause(50)
    await shows('connected  values 1 false texts 1 false undefined last 1')
    const seen = []
    show(true)
    for (let n = 0; n < 10; n += 1) {
      seen.push(document.body.lastChild.textContent)
      await pause(5)
    }
    if (seen.some((text) => !text.includes('last 1'))) throw new Error(`shown: ${seen}`)
    publish('tank/3/level', '3')
    await shows('connected  values 1 false texts 2 false undefined last 3')
  },

  /** A refused subscription shows its error; who mounts later asks again, and both show what comes. */
  async refused() {
    let allowed = false
    const { render, shows, publish } = setting({ authorizeSubscribe: () => allowed || 0x87 })
    const Values = () => {
      const { error, size } = useLatestValues(level)
      return ` values ${error?.code ?? size}`
    }
    const Texts = () => {
      const { error, messages } = useSubscription('tank/+/level')
      return ` texts ${error?.code ?? messages.length}`
    }
    const both = [<Values key="v" />, <Texts key="t" />]
    render(both)
    await shows(' values ERR_SUBSCRIBE_REFUSED texts ERR_SUBSCRIBE_REFUSED')
    allowed = true
    render([both, <Values key="w" />, <Texts key="u" />])
    await shows(' values 0 texts 0 values 0 texts 0')
    await pause(50)
    publish('tank/1/level', '1')
    await shows(' values 1 texts 1 values 1 texts 1')
  },

  /** What a component throws for its parameters lets the client go with the last component. */
  async thrown() {
    const { broker, render, shows, root } = setting()
    const Values = () => useLatestValues(level, { id: '+' }).size
    const Texts = () => useSubscription('a/#/b').messages.length
    render([
      <State key="s" />,
      <Boundary key="v">
        <Values />
      </Boundary>,
      <Boundary key="t">
        <Texts />
      </Boundary>,
    ])
    await shows('connected ERR_INVALID_TOPICERR_INVALID_TOPIC')
    root.unmount()
    await until(() => broker.clients.size === 0, 'the end of the client')
  },

  /** During an outage everything is stale. */
  async outage() {
    let up = true
    const { broker, place, render, shows, publish } = setting({ authenticate: () => up || 0x89 })
    const Values = () => [...useLatestValues(level)].map(([topic, { stale }]) => `${topic} ${stale}`).join()
    render([<State key="s" />, <Values key="v" />])
    await shows('connected ')
    publish('tank/1/level', '1', true)
    await shows('connected tank/1/level false')
    up = false
    broker.disconnect([...broker.clients.keys()][0], 0x8b)
    await until(() => /reconnecting.*true$/.test(place.textContent), 'stale values')
    up = true
    await shows('connected tank/1/level false')
  },
}
