/** Components over a broker in the same page: each function is a scenario that gives what was seen. */
import { Client } from 'mqwire'
import {
  MqttProvider,
  useCall,
  useConnectionState,
  useLatest,
  useLatestValues,
  useMessages,
  usePublish,
  useStream,
  useSubscription,
  useTrouble,
} from 'mqwire/react'
import { MemoryBroker } from 'mqwire/testing'
import * as mq from 'mqwire/typed'
import { Component, StrictMode, useEffect } from 'react'
import { createRoot } from 'react-dom/client'

const level = mq.channel('tank/{id}/level', mq.number(), { qos: 1 })
const setpoint = mq.operation('set/{line}', mq.number(), mq.json(), { timeout: 5000 })
const clock = mq.operation('clock', undefined, mq.number())
const counting = mq.operation('count/{to:number}', undefined, mq.number())
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(holds, what) {
  for (let time = 0; time < 400; time += 1) {
    if (await holds()) return
    await pause(10)
  }
  throw new Error(`not seen: ${typeof what === 'function' ? what() : what}`)
}

let count = 0

/** A page with a broker of its own. */
function setting(hooks = {}) {
  const broker = new MemoryBroker(hooks)
  const url = { url: `memory://broker-${++count}`, transport: broker.dial }
  const place = document.body.appendChild(document.createElement('div'))
  const root = createRoot(place)
  const tree = (children, options) => (
    <MqttProvider url={url} options={{ reconnect: { backoff: () => 20 }, ...options }}>
      {children}
    </MqttProvider>
  )
  const render = (children, options) => root.render(tree(children, options))
  /** The same with each render and each effect twice. */
  const strictly = (children) => root.render(<StrictMode>{tree(children)}</StrictMode>)
  const publish = (topic, payload, retain = false) =>
    broker.publish({ topic, payload: new TextEncoder().encode(payload), qos: 1, retain })
  return {
    broker,
    place,
    root,
    render,
    strictly,
    publish,
    shows: (text) =>
      until(
        () => place.textContent === text,
        () => `${text}; there is ${place.textContent}`,
      ),
  }
}

const State = () => `${useConnectionState()} ${useTrouble()?.code ?? ''}`

/** A client that serves, on the broker of a setting. */
async function serverOf(broker) {
  const server = new Client({ url: 'memory://broker', transport: broker.dial })
  await server.connect()
  return server
}

function expected(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`${what}: ${JSON.stringify(found)}, and not ${JSON.stringify(wanted)}`)
}

/** Shows what a component throws. */
class Boundary extends Component {
  state = {}
  static getDerivedStateFromError = (error) => ({ error })
  render() {
    return this.state.error === undefined
      ? this.props.children
      : this.state.error[this.props.shows ?? 'code']
  }
}

globalThis.react = {
  /** A wrong password, then the right one, as the same component has them. */
  async password() {
    const { render, shows } = setting({
      authenticate: ({ password }) => new TextDecoder().decode(password) === 'right' || 0x86,
    })
    const show = (password) => render(<State />, { clientId: 'me', username: 'me', password })
    show('wrong')
    await shows('closed ERR_CONNECT_REFUSED')
    show('right')
    await shows('connected ')
  },

  /** Another key of the provider tries again with what a function gives now. */
  async credentials() {
    const { broker, root } = setting({
      authenticate: ({ password }) => new TextDecoder().decode(password) === 'right' || 0x86,
    })
    const url = { url: `memory://broker-${++count}`, transport: broker.dial }
    const place = document.body.appendChild(document.createElement('div'))
    const own = createRoot(place)
    root.unmount()
    for (const [password, text] of [
      ['wrong', 'closed ERR_CONNECT_REFUSED'],
      ['right', 'connected '],
    ]) {
      own.render(
        <MqttProvider
          key={password}
          url={url}
          options={{
            credentials: () => ({ username: 'me', password }),
            reconnect: { decide: () => 'stop' },
          }}
        >
          <State />
        </MqttProvider>,
      )
      await until(
        () => place.textContent === text,
        () => `${text}; there is ${place.textContent}`,
      )
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
      const value = useLatestValues(
        level,
        {},
        { select: (values) => values.get(`tank/${id}/level`)?.value },
      )
      return <i>{value ?? '-'}</i>
    }
    const Waits = () => {
      asked += 1
      return useLatestValues(level, { select: ({ isPending }) => isPending }) ? 'asked' : 'granted'
    }
    render([
      <Waits key="waits" />,
      ...Array.from({ length: 2000 }, (_, id) => <Row key={id} id={id} />),
    ])
    await until(() => place.textContent.startsWith('granted'), 'the grant')
    const before = [renders, asked]
    for (let id = 0; id < 20; id += 1) {
      publish(`tank/${id * 100}/level`, String(id))
      await until(
        () => place.querySelectorAll('i')[id * 100].textContent === String(id),
        `the value ${id}`,
      )
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
      const select = (shown) => [
        shown.isPending,
        ...shown.map((message) => message.text()).filter((text) => Number(text) > 9),
      ]
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
  async enabled() {
    const asked = []
    const { strictly, publish, shows } = setting({
      authorizeSubscribe: (_client, { filter }) => asked.push(filter) > 0,
    })
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
      const all = [
        <State key="s" />,
        <Values key="v" enabled={enabled} />,
        <Texts key="t" enabled={enabled} />,
        <Last key="l" enabled={enabled} />,
      ]
      strictly(all)
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

  /** A call with all its arguments: made once in StrictMode and for two components, again for other arguments, never while it is not enabled. */
  async call() {
    const { broker, strictly, shows } = setting()
    const server = await serverOf(broker)
    const asked = []
    await setpoint.on(server).serve(({ params, value }) => {
      asked.push(`${params.line}=${value}`)
      if (value === 13) throw new Error('no')
      return { was: value * 2 }
    })
    let again
    function Answer({ value, enabled }) {
      const { data, error, isPending, call } = useCall(setpoint, { line: 'a' }, value, {
        select: ({ was }) => was,
        enabled,
      })
      again = call
      return ` ${data} ${error?.code} ${isPending}`
    }
    const show = (value, enabled) =>
      strictly(
        <>
          <Answer value={value} enabled={enabled} />
          <Answer value={value} enabled={enabled} />
        </>,
      )
    const twice = (text) => shows(` ${text} ${text}`)
    show(1, false)
    await twice('undefined undefined false')
    await pause(100)
    expected('not enabled', asked, [])
    show(1)
    await twice('2 undefined false')
    show(2)
    await twice('4 undefined false')
    expected('asked', asked, ['a=1', 'a=2'])
    const stable = again
    expected('again', await again(), { was: 4 })
    await twice('4 undefined false')
    show(2, false)
    await twice('4 undefined false')
    expected('the data before, and asked', asked, ['a=1', 'a=2', 'a=2'])
    show(13)
    await twice('undefined ERR_REMOTE false')
    if (stable !== again) throw new Error('call has changed')
    await server.disconnect()
  },

  /** Values of all kinds: each has its own answer, and those that hold the same share one. */
  async objects() {
    class Level {
      constructor(level) {
        this.level = level
      }
    }
    class Aged extends Level {
      get age() {
        return performance.now()
      }
    }
    const make = () => {
      const ring = { level: 1 }
      ring.ring = ring
      return [
        ...[
          new Level(1),
          new Level(2),
          { level: 1 },
          new Aged(3),
          ring,
          { level: 1, ring: { level: 1 } },
        ],
        ...[
          new Map([['level', 3]]),
          new Map([['level', 4]]),
          [['level', 3]],
          new Set([1]),
          [1],
          [1, 2],
          Uint8Array.of(1, 2),
          Int8Array.of(1, 2),
        ],
        ...[
          new Uint8Array([1, 2]).buffer,
          new Date(0),
          new Date(0).toISOString(),
          new Date(Number.NaN),
          new URL('http://a/'),
          'http://a/',
        ],
        ...[
          {},
          { a: undefined },
          { a: null },
          [],
          [undefined],
          [null],
          1,
          '1',
          1n,
          '1n',
          null,
          'null',
          Number.NaN,
          'NaN',
          1 / 0,
          -1 / 0,
          0,
          -0,
          true,
          '',
        ],
      ]
    }
    const lists = [make(), make()]
    const indexOf = (value) =>
      lists
        .map((list) => list.findIndex((each) => Object.is(each, value)))
        .find((index) => index >= 0)
    const codec = {
      encode: (value) => String(indexOf(value)),
      decode: (bytes) => Number(new TextDecoder().decode(bytes)),
    }
    const level = mq.operation('level', codec, mq.number())
    const { broker, strictly, shows } = setting()
    const server = await serverOf(broker)
    let asked = 0
    await level.on(server).serve(({ value }) => {
      asked += 1
      return value
    })
    const Answer = ({ value }) => ` ${useCall(level, value).data}`
    strictly(lists.flat().map((value, index) => <Answer key={String(index)} value={value} />))
    await shows(lists.flatMap((list) => list.map((_value, index) => ` ${index}`)).join(''))
    expected('asked', asked, lists[0].length)
  },

  /** Parameters that are not known are refused, also beside a component that shows all topics; parameters of a class count by what they hold. */
  async unknown() {
    class Tank {
      #id
      constructor(id) {
        this.#id = id
      }
      get id() {
        return this.#id
      }
    }
    const { render, publish, shows } = setting()
    const Values = ({ given }) =>
      ` ${[...useLatestValues(level, given).values()].map(({ value }) => value)}`
    const Texts = ({ given }) => ` ${useMessages(level, given).map(({ value }) => value)}`
    const all = [{}, { id: undefined }, null, new Tank('a'), new Tank('b'), new Tank(undefined)]
    render(
      all.flatMap((given, index) =>
        [Values, Texts].map((Each) => (
          <Boundary key={`${Each.name}${index}`}>
            <Each given={given} />
          </Boundary>
        )),
      ),
    )
    const refused = 'ERR_INVALID_TOPICERR_INVALID_TOPIC'
    await until(
      () => document.body.lastChild.textContent.split('ERR_INVALID_TOPIC').length > 4,
      () => document.body.lastChild.textContent,
    )
    await pause(50)
    publish('tank/a/level', '1')
    publish('tank/b/level', '2')
    await shows(` 1,2 1,2${refused}ERR_INVALID_TOPICERR_INVALID_OPTION 1 1 2 2${refused}`)
  },

  /** Calls by hand: each promise has its own answer, the last call is shown, and what nobody awaits stays silent. */
  async byHand() {
    const { broker, place, render, root, shows } = setting()
    const server = await serverOf(broker)
    const waiting = new Map()
    const aborted = []
    await setpoint
      .on(server)
      .serve(
        ({ value }) => new Promise((resolve, reject) => waiting.set(value, { resolve, reject })),
        { concurrency: 10 },
      )
    const calls = {}
    let renders = 0
    function Form() {
      renders += 1
      const all = useCall(setpoint)
      const line = useCall(setpoint, { line: 'b' })
      const time = useCall(clock)
      Object.assign(calls, { all: all.call, line: line.call, time: time.call })
      return [all, line, time]
        .map(({ data, error, isPending }) => ` ${data?.was} ${error?.code} ${isPending}`)
        .join()
    }
    render(<Form />)
    const idle = ' undefined undefined false'
    const is = (first, second = idle) => shows(`${first},${second},${idle}`)
    await is(idle)
    const first = calls.all({ line: 'a' }, 1)
    await is(' undefined undefined true')
    const second = calls.all({ line: 'a' }, 2, { timeout: 4000 })
    await until(() => waiting.size === 2, 'both requests')
    waiting.get(2).resolve({ was: 2 })
    expected('the second', await second, { was: 2 })
    await is(' 2 undefined false')
    waiting.get(1).resolve({ was: 1 })
    expected('the first', await first, { was: 1 })
    await pause(50)
    await is(' 2 undefined false')
    calls.all({ line: 'a' }, 3)
    await is(' 2 undefined true')
    await until(() => waiting.has(3), 'the third')
    waiting.get(3).reject(new Error('no'))
    await is(' 2 ERR_REMOTE false')
    // Wrong arguments are shown, and no unhandled rejection.
    calls.all({ line: '+' }, 4)
    await is(' 2 ERR_INVALID_TOPIC false')
    const abort = new AbortController()
    calls.line(5, { signal: abort.signal })
    await is(' 2 ERR_INVALID_TOPIC false', ' undefined undefined true')
    abort.abort()
    await is(' 2 ERR_INVALID_TOPIC false', ' undefined ERR_ABORTED false')
    const left = calls.line(6).catch(({ code }) => aborted.push(code))
    await until(() => waiting.has(6), 'the sixth')
    const before = renders
    root.unmount()
    await left
    expected('in flight', aborted, ['ERR_ABORTED'])
    expected('renders', renders, before)
    expected('shown', place.textContent, '')
    await until(() => broker.clients.size === 1, 'the end of the client')
    expected(
      'afterwards',
      await calls.line(7, { timeout: 5000 }).catch(({ code }) => code),
      'ERR_ABORTED',
    )
    await until(() => broker.clients.size === 1, 'the end of the client')
    for (const { resolve } of waiting.values()) resolve({})
    await server.disconnect()
  },

  /** A child calls in its effect, which is before that of the component whose hook it is; StrictMode does so twice. */
  async effects() {
    const { broker, strictly, shows } = setting()
    const server = await serverOf(broker)
    const asked = []
    await setpoint.on(server).serve(({ value }) => ({ was: asked.push(value) }))
    const Child = ({ ask, value }) => useEffect(() => void ask({ line: 'c' }, value), [ask, value])
    function Parent({ value }) {
      const { data, isPending, call } = useCall(setpoint)
      return (
        <>
          {` ${data?.was} ${isPending}`}
          <Child ask={call} value={value} />
        </>
      )
    }
    const show = (value) => strictly(<Parent value={value} />)
    show(1)
    await shows(' 2 false')
    show(2)
    await shows(' 3 false')
    expected('asked', asked, [1, 1, 2])
    await server.disconnect()
  },

  /** Streams: by themselves, by hand, stopped, failed, and left with their component. */
  async streams() {
    const { broker, strictly, root, shows } = setting()
    const server = await serverOf(broker)
    const log = []
    await counting.on(server).serve(async function* ({ params: { to } }) {
      log.push(`begin ${to}`)
      try {
        for (let n = 1; n <= Math.abs(to); n += 1) yield n
        while (to > 99) {
          await pause(20)
          yield 0
        }
        if (to < 0) throw new Error('no')
      } finally {
        log.push(`end ${to}`)
      }
    })
    let hand
    let renders = 0
    function Count({ to, enabled }) {
      renders += 1
      const { data, error, isPending, isDone } = useStream(counting, { to }, { limit: 3, enabled })
      return ` ${data} ${error?.code} ${isPending} ${isDone}`
    }
    function Hand() {
      hand = useStream(counting, { select: (all) => all.length })
      return ` ${hand.data} ${hand.error?.code} ${hand.isPending} ${hand.isDone}`
    }
    const show = (to, enabled) =>
      strictly(
        <>
          <Count to={to} enabled={enabled} />
          <Hand />
        </>,
      )
    show(60, false)
    await shows('  undefined false false 0 undefined false false')
    show(60)
    await shows(' 58,59,60 undefined false true 0 undefined false false')
    // StrictMode renders twice; once a frame, or less.
    if (renders > 60) throw new Error(`${renders} renders`)
    show(-2)
    await shows(' 1,2 ERR_REMOTE false false 0 undefined false false')
    hand.stream({ to: 5 })
    await shows(' 1,2 ERR_REMOTE false false 5 undefined false true')
    hand.stream({ to: 100 })
    hand.stream({ to: 101 })
    await shows(' 1,2 ERR_REMOTE false false 100 undefined false false')
    hand.stop()
    await until(() => log.includes('end 101'), 'the end of the generator')
    await shows(' 1,2 ERR_REMOTE false false 100 undefined false false')
    show(102)
    await until(() => log.includes('begin 102'), 'the stream')
    await pause(50)
    root.unmount()
    await until(() => log.includes('end 102'), 'the end of the generator')
    expected(
      'begun',
      log.filter((line) => line.startsWith('begin') && line !== 'begin 100'),
      ['begin 60', 'begin -2', 'begin 5', 'begin 101', 'begin 102'],
    )
    await server.disconnect()
  },

  /** Messages of a filter and of a channel, and publishing to them. */
  async messages() {
    const { broker, render, shows } = setting()
    let publish
    const stable = new Set()
    function Lines() {
      const texts = useMessages('tank/#', {
        limit: 2,
        select: (all) => all.map((message) => message.text()).join(),
      })
      const { messages, isPending } = useMessages(level, { id: 'a' }, { limit: 2 })
      const count = useMessages(level, { select: ({ length }) => length })
      const [byClient, byTopic, byChannel, byBoth] = [
        usePublish(),
        usePublish('tank/a/level'),
        usePublish(level),
        usePublish(level, { id: 'b' }),
      ]
      publish = { byClient, byTopic, byChannel, byBoth }
      for (const each of Object.values(publish)) stable.add(each)
      return ` ${texts} ${messages.map(({ params, value }) => `${params.id}${value}`)} ${count} ${isPending}`
    }
    render(<Lines />)
    await shows('   0 false')
    expected('receipt', (await publish.byClient('tank/a/level', '1', { qos: 1 })).reasonCode, 0)
    await publish.byTopic('2', { qos: 1 })
    await publish.byChannel({ id: 'a' }, 3)
    await publish.byBoth(4, { qos: 1 })
    await shows(' 3,4 a2,a3 4 false')
    expected('stable', stable.size, 4)
    publish.byChannel({ id: 'a' }, 'no').catch(() => undefined)
    expected('wrong', await publish.byBoth('no').catch(({ code }) => code), 'ERR_INVALID_PAYLOAD')
    if (broker.clients.size !== 1) throw new Error('clients')
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

  /** Options that are wrong are refused by name, in the render, and nothing is asked for. */
  async wrong() {
    const { broker, render, shows, root } = setting()
    const uses = [
      ['enabled', () => useMessages('a', { enabled: 'yes' })],
      ['enabledd', () => useMessages('a', { enabledd: false })],
      ['limit', () => useMessages('a', { limit: 0 })],
      ['channel', () => useMessages(undefined)],
      ['options', () => useSubscription('a', null)],
      ['equal', () => useLatest('a', { equal: 3 })],
      ['select', () => useLatestValues(level, { id: '+' }, { select: 3 })],
      ['channel', () => useLatestValues('a')],
      ['limit', () => useCall(clock, { limit: 3 })],
      ['operation', () => useCall(level)],
      ['operation', () => useStream(undefined)],
      ['qos', () => useStream(counting, { to: 3 }, { qos: 1 })],
    ]
    const components = uses.map(
      ([, use]) =>
        () =>
          use() && 'nothing',
    )
    render([
      <State key="s" />,
      ...components.map((Use, index) => (
        <Boundary key={index} shows="option">
          <Use />
        </Boundary>
      )),
    ])
    await shows(`connected ${uses.map(([option]) => option).join('')}`)
    root.unmount()
    await until(() => broker.clients.size === 0, 'the end of the client')
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
    const Values = () =>
      [...useLatestValues(level)].map(([topic, { stale }]) => `${topic} ${stale}`).join()
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
