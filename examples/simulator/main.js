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
import { setUpLinks } from './link-form.js'
import { payloadKinds } from './payload.js'
import { reportOf } from './report.js'
import { save } from './saving.js'
import { ScenarioForm } from './scenario-form.js'
import { setUpTemplates } from './template-form.js'

const shownEntries = 60
/** Milliseconds between two looks at the figures. */
const lookEvery = 500
/** Most devices of a page. */
const mostDevices = 1000
/** Most devices whose names have room in the grid. */
const mostNamed = 100
/** Fields of what holds for a whole run. */
const fixed = [
  'what',
  'topic',
  'seed',
  'prefix',
  'description',
  'file',
  'username',
  'password',
  'clientid',
]

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
  #scenarios
  #description
  /** The line of the devices. */
  #line
  #grid
  #details
  #figures = new FiguresView(byId('figures'), byId('allowed'))
  #network = watchNetwork()
  #buttons = new Map()
  #frame
  #look
  #entries = -1
  #state

  constructor(broker, scenarios) {
    this.#broker = broker
    this.#scenarios = scenarios
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
    this.#fleet.renewed = () => {
      this.#details.open(undefined)
      const { scenario } = this.#fleet
      this.#grid.clear(scenario !== undefined && scenario.devices.length <= mostNamed)
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
    byId('consumer').addEventListener('submit', () => byId('settings').requestSubmit())
    byId('stop').addEventListener('click', () => this.#stop())
    byId('save-report').addEventListener('click', () => this.#saveReport())
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
    const settings = {}
    // A field that cannot be changed now, or has no meaning, is not in the form.
    for (const name of ['devices', 'rate', 'qos', 'ramp'])
      if (form.has(name)) settings[name] = Number(form.get(name))
    for (const name of ['payload', 'topic', 'template'])
      if (form.has(name)) settings[name] = form.get(name)
    this.#line = form.get('line')
    this.#broker.setLine?.(this.#line)
    if (this.#fleet.state !== 'running') {
      if (!this.#start(settings, form)) return
    } else {
      this.#fleet.set(settings)
      const { rate, qos } = this.#fleet.settings
      const each = this.#fleet.scenario === undefined ? `: ${rate} a second, QoS ${qos}` : ''
      this.#fleet.journal.note(`settings applied${each}`)
    }
    this.#look ??= setInterval(() => this.#draw(), lookEvery)
    this.#draw()
  }

  // False when there is nothing to start.
  #start(settings, form) {
    if (this.#scenarios.isChosen && !this.#scenarios.check()) {
      byId('settings').reportValidity()
      return false
    }
    const given = (name, of = form) => of.get(name) || undefined
    const apart = new FormData(byId('consumer'))
    const consumer = {
      username: given('consumerlogin', apart),
      password: given('consumersecret', apart),
    }
    this.#fleet.credentials = {
      username: given('username'),
      password: given('password'),
      clientId: given('clientid'),
      consumer: consumer.username === undefined ? undefined : consumer,
    }
    this.#description = this.#scenarios.isChosen ? form.get('description') : undefined
    this.#fleet.start(settings, this.#scenarios.make())
    return true
  }

  #saveReport() {
    const { journal, latency, run } = this.#fleet
    const report = reportOf({
      broker: this.#broker.name,
      settings: this.#settingsInWords(),
      run,
      now: Date.now(),
      figures: this.#fleet.figures(),
      latency,
      entries: journal.entries,
      description: this.#description,
      failure: this.#fleet.failures.text,
    })
    const at = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
    save(`mqwire-simulator-${at}.html`, 'text/html', report)
  }

  // Of the run, as the form names them.
  #settingsInWords() {
    const { settings, scenario } = this.#fleet
    const fields = byId('settings').elements
    const words = (field, value) =>
      [...field.options].find((each) => each.value === String(value))?.text ?? value
    const shared = [
      ['Devices', settings.devices],
      ['Start', words(fields.ramp, settings.ramp)],
      ...(this.#broker.isInMemory ? [['Line', words(fields.line, this.#line)]] : []),
    ]
    if (scenario !== undefined)
      return [
        ['Scenario', scenario.name],
        ['Seed', scenario.seed],
        ['Prefix', scenario.prefix || 'none'],
        ...shared,
      ]
    return [
      ...shared,
      ['Messages a second', settings.rate],
      ['QoS', words(fields.qos, settings.qos)],
      ['Payload', words(fields.payload, settings.payload)],
      ['Topic', settings.topic],
      ...(settings.payload === 'template' ? [['Template', settings.template]] : []),
    ]
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
    this.#details.open(this.#fleet.devices[index])
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
    write(byId('failure'), this.#fleet.failures.text)
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
    byId('save-report').disabled = this.#fleet.run.began === undefined
    const fields = byId('settings').elements
    for (const field of [...fixed.map((name) => fields[name]), ...byId('consumer').elements])
      field.disabled = state !== 'stopped'
    // The devices of a scenario are those of its description.
    fields.devices.disabled = state !== 'stopped' && this.#fleet.scenario !== undefined
    for (const button of this.#buttons.values()) button.disabled = state !== 'running'
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

function forWebSockets({ devices, ramp, what }) {
  devices.value = '50'
  ramp.value = '20'
  byId('line-label').hidden = true
  const crowd = byId('crowd')
  crowd.hidden = false
  const tell = () => {
    const count = Number(devices.value)
    const most = Math.ceil(count / mostWebSockets)
    const limit = `A browser opens about 200 WebSockets at a time, and slowly: up to ${mostWebSockets} devices have a connection each.`
    if (what.value !== 'fleet')
      return write(crowd, `${limit} The devices of a scenario do not share any.`)
    write(
      crowd,
      count > mostWebSockets
        ? `${limit} ${count.toLocaleString('en')} devices share ${mostWebSockets} connections, up to ${most} devices each, and break and come back with them.`
        : `${limit} Of more, several share one.`,
    )
  }
  devices.addEventListener('input', tell)
  what.addEventListener('change', tell)
  tell()
}

/** Shows the fields of a mode, and of a real broker where there is one; hidden ones take no part in the form. */
function showMode(mode, isInMemory) {
  for (const box of document.querySelectorAll('fieldset[data-for]')) {
    const isOn = box.dataset.for === (box.dataset.for === 'real' && !isInMemory ? 'real' : mode)
    box.hidden = !isOn
    box.disabled = !isOn
  }
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
    showMode('fleet', true)
    write(byId('broker'), problem)
    byId('start').disabled = true
    return
  }
  write(byId('broker'), broker.name)
  const fields = byId('settings').elements
  const scenarios = new ScenarioForm(
    fields,
    {
      about: byId('scenario-about'),
      box: byId('description'),
      format: byId('format'),
      save: byId('save-description'),
      showMode: (mode) => showMode(mode, broker.isInMemory),
    },
    Math.min(mostDevices, broker.mostLinks),
  )
  if (!broker.isInMemory) forWebSockets(fields)
  setUpLinks(fields, scenarios, {
    button: byId('copy-link'),
    box: byId('link-label'),
    link: byId('link'),
    about: byId('link-about'),
  })
  new Page(broker, scenarios)
}

begin()
