/**
 * The page: reads the settings, runs a fleet over the broker that the address names, and draws what happens.
 *
 * Whatever happens in a fleet, the page is written once a frame (the cells) or twice a second (everything else), never for a message. Texts go into
 * the page as text only.
 */
import { Client } from 'mqwire'
import { lines, memoryBroker, mostWebSockets, webSocketBroker } from './brokers.js'
import { DetailsView } from './details.js'
import { Faults, faults, takeOver } from './faults.js'
import { FiguresView, write } from './figures.js'
import { Fleet } from './fleet.js'
import { Grid, signs } from './grid.js'
import { payloadKinds } from './payload.js'
import { setUpTemplates } from './template-form.js'

const shownEntries = 60
/** Milliseconds between two looks at the figures. */
const lookEvery = 500

const byId = (id) => document.getElementById(id)
const clock = {
  now: () => performance.now(),
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
}

function option(value, text) {
  const element = document.createElement('option')
  element.value = value
  element.textContent = text
  return element
}

/** The broker that the address of the page asks for; what is wrong with it where it cannot be used. */
function chosenBroker() {
  const url = new URLSearchParams(location.search).get('url')
  if (url === null) return { broker: memoryBroker() }
  const isWebSocket = URL.canParse(url) && ['ws:', 'wss:'].includes(new URL(url).protocol)
  return isWebSocket
    ? { broker: webSocketBroker(url) }
    : { problem: 'The address in ?url= is no ws: or wss: address.' }
}

/** Counts what leaves the page from now on: requests that the browser made, and those that it forbade. */
function watchNetwork() {
  const since = performance.now()
  const seen = { requests: 0, forbidden: 0 }
  const observer = new PerformanceObserver((list) => {
    seen.requests += list.getEntries().filter(({ startTime }) => startTime > since).length
  })
  observer.observe({ type: 'resource' })
  document.addEventListener('securitypolicyviolation', () => {
    seen.forbidden += 1
  })
  return seen
}

class Page {
  #fleet
  #faults
  #broker
  #grid
  #details
  #figures = new FiguresView(byId('figures'), byId('allowed'))
  #network = watchNetwork()
  #buttons = new Map()
  #frame
  #look
  #entries = -1
  #state

  constructor(broker) {
    this.#broker = broker
    this.#fleet = new Fleet({
      makeClient: (endpoint, options) => new Client(endpoint, options),
      broker,
      clock,
      // Several pages may share a broker.
      name: crypto.getRandomValues(new Uint32Array(1))[0].toString(36),
    })
    this.#faults = new Faults(this.#fleet)
    this.#grid = new Grid(byId('devices'), (index) => this.#open(index))
    this.#details = new DetailsView(
      {
        panel: byId('details'),
        title: byId('details-title'),
        list: byId('details-list'),
        toggle: byId('device-toggle'),
        cut: byId('device-cut'),
        take: byId('device-take'),
        close: byId('device-close'),
      },
      (name, index) => this.#act(name, index),
    )
    this.#fleet.changed = (index) => {
      this.#grid.change(index)
      this.#frame ??= requestAnimationFrame(() => this.#drawFrame())
    }
    this.#listen()
    this.#draw()
    // For those who want to play with it in the console.
    globalThis.simulator = { fleet: this.#fleet, faults: this.#faults, broker }
  }

  #listen() {
    byId('settings').addEventListener('submit', (event) => {
      event.preventDefault()
      this.#apply(new FormData(event.target))
    })
    byId('stop').addEventListener('click', () => this.#stop())
    for (const [name, { label, about, needsMemory }] of Object.entries(faults)) {
      const button = document.createElement('button')
      button.type = 'button'
      button.textContent = label
      button.title = about
      if (this.#faults.can(name)) {
        button.addEventListener('click', () => this.#break(name))
        for (const type of ['focus', 'pointerenter'])
          button.addEventListener(type, () => write(byId('fault-about'), about))
        this.#buttons.set(name, button)
      } else if (needsMemory) button.title = `${about} Only the broker in this page can be told to.`
      button.disabled = true
      byId('faults').append(button)
    }
    byId('details').addEventListener(
      'keydown',
      ({ key }) => key === 'Escape' && this.#act('close', this.#details.index),
    )
  }

  #apply(form) {
    const number = (name) => Number(form.get(name))
    const settings = {
      devices: number('devices'),
      rate: number('rate'),
      qos: number('qos'),
      payload: form.get('payload'),
      ramp: number('ramp'),
    }
    // A field that cannot be changed now is not in the form.
    for (const name of ['topic', 'template']) if (form.has(name)) settings[name] = form.get(name)
    this.#broker.setLine?.(form.get('line'))
    if (this.#fleet.state === 'running') this.#fleet.set(settings)
    else this.#start(settings, form)
    this.#look ??= setInterval(() => this.#draw(), lookEvery)
    this.#draw()
  }

  #start(settings, form) {
    const given = ['username', 'password'].filter((name) => form.has(name) && form.get(name) !== '')
    this.#fleet.credentials = Object.fromEntries(given.map((name) => [name, form.get(name)]))
    this.#fleet.start(settings)
  }

  async #stop() {
    this.#faults.endAll()
    const stopping = this.#fleet.stop()
    this.#draw()
    await stopping
    clearInterval(this.#look)
    this.#look = undefined
    this.#draw()
  }

  #break(name) {
    this.#faults.begin(name)
    this.#draw()
  }

  #open(index) {
    this.#details.open(index)
    this.#grid.mark(index)
    this.#drawDetails()
    byId('details-title').focus({ preventScroll: true })
    byId('details').scrollIntoView({ block: 'nearest' })
  }

  #act(name, index) {
    const device = this.#fleet.devices[index]
    if (name === 'close') {
      this.#details.open(undefined)
      this.#grid.mark(undefined)
      this.#grid.focus(index)
    } else if (name === 'toggle') {
      if (device.isRunning) this.#fleet.halt(device)
      else this.#fleet.resume(device)
    } else if (name === 'cut') this.#broker.links.cut((owner) => owner === device.clientId)
    else takeOver(this.#fleet, device)
    this.#draw()
  }

  #drawFrame() {
    this.#frame = undefined
    this.#grid.draw(this.#fleet.devices)
  }

  #draw() {
    const { state, journal } = this.#fleet
    this.#figures.draw(this.#fleet.figures(), this.#fleet.recentLatency(), clock.now())
    this.#drawDetails()
    if (state !== this.#state) this.#drawState(state)
    for (const [name, button] of this.#buttons)
      button.setAttribute('aria-pressed', String(this.#faults.isRunning(name)))
    if (journal.version !== this.#entries) this.#drawLog(journal)
    write(byId('status'), journal.news)
    write(byId('network'), this.#networkText())
  }

  #drawDetails() {
    const { devices, state, settings } = this.#fleet
    this.#details.draw(devices, state === 'running' ? settings.devices : 0)
  }

  #drawState(state) {
    this.#state = state
    write(byId('start'), state === 'running' ? 'Apply' : 'Start')
    byId('start').disabled = state === 'stopping'
    byId('stop').disabled = state !== 'running'
    // What holds for a whole run.
    for (const name of ['topic', 'username', 'password'])
      byId('settings').elements[name].disabled = state !== 'stopped' || this.#isHidden(name)
    for (const button of this.#buttons.values()) button.disabled = state !== 'running'
  }

  #isHidden(name) {
    return this.#broker.isInMemory && name !== 'topic'
  }

  #drawLog({ entries, version }) {
    this.#entries = version
    byId('log').replaceChildren(...entries.slice(0, shownEntries).map(logLine))
  }

  #networkText() {
    const { requests, forbidden } = this.#network
    const { devices } = this.#fleet.figures()
    const shared =
      devices > mostWebSockets ? `, ${mostWebSockets} of them shared by ${devices} devices` : ''
    if (!this.#broker.isInMemory) return `WebSockets open: ${this.#broker.links.size}${shared}`
    return `No network: ${requests + forbidden} requests since start, and its policy lets none out`
  }
}

function logLine({ at, text, count }) {
  const line = document.createElement('li')
  const time = document.createElement('time')
  const what = document.createElement('span')
  time.textContent = new Date(at).toLocaleTimeString([], { hour12: false })
  what.textContent = text
  line.append(time, what)
  if (count > 1) {
    const times = document.createElement('b')
    times.textContent = `${count} times`
    line.append(times)
  }
  return line
}

function forWebSockets({ devices, ramp }) {
  devices.value = '50'
  ramp.value = '20'
  byId('line-label').hidden = true
  for (const label of document.querySelectorAll('.real')) label.hidden = false
  const crowd = byId('crowd')
  crowd.hidden = false
  const tell = () => {
    const count = Number(devices.value)
    const most = Math.ceil(count / mostWebSockets)
    const limit = `A browser opens about 200 WebSockets at a time, and slowly: up to ${mostWebSockets} devices have a connection each.`
    write(
      crowd,
      count > mostWebSockets
        ? `${limit} ${count.toLocaleString('en')} devices share ${mostWebSockets} connections, up to ${most} devices each, and break and come back with them.`
        : `${limit} Of more, several share one.`,
    )
  }
  devices.addEventListener('input', tell)
  tell()
}

function begin() {
  const { broker, problem } = chosenBroker()
  byId('settings').elements.payload.append(
    ...Object.entries(payloadKinds).map(([value, text]) => option(value, text)),
  )
  byId('settings').elements.line.append(
    ...Object.keys(lines).map((name) =>
      option(name, name === 'direct' ? 'direct' : `new links: ${name}`),
    ),
  )
  setUpTemplates(byId('settings').elements, {
    about: byId('template-about'),
    list: byId('placeholders'),
    box: byId('templates'),
  })
  for (const [sign, words] of Object.values(signs)) {
    const entry = document.createElement('span')
    entry.textContent = `${sign} ${words}`
    byId('legend').append(entry)
  }
  if (broker === undefined) {
    write(byId('broker'), problem)
    byId('start').disabled = true
    return
  }
  write(byId('broker'), broker.name)
  if (!broker.isInMemory) forWebSockets(byId('settings').elements)
  new Page(broker)
}

begin()
