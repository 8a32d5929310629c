/** The page: a table of the latest readings, and a button that opens the windows of a house. */
import { connect } from 'mqwire'
import { greenhouse } from './contract.js'

const table = document.querySelector('tbody') as HTMLTableSectionElement
const said = document.querySelector('output') as HTMLOutputElement

const client = await connect(
  new URLSearchParams(location.search).get('url') ?? 'ws://127.0.0.1:9001',
)
const { climate, windows, history } = greenhouse.on(client)
const latest = climate.latest({}, { limit: 100, expire: 60_000 })

function cell(text: string): HTMLTableCellElement {
  const made = document.createElement('td')
  made.textContent = text
  return made
}

function button(text: string, act: () => Promise<string>): HTMLTableCellElement {
  const made = document.createElement('button')
  made.type = 'button'
  made.textContent = text
  made.onclick = () =>
    act().then(
      (line) => (said.textContent = line),
      (error: Error) => (said.textContent = error.message),
    )
  const around = document.createElement('td')
  around.append(made)
  return around
}

function row(house: string, texts: readonly string[], stale: boolean): HTMLTableRowElement {
  const made = document.createElement('tr')
  made.classList.toggle('stale', stale)
  const open = button(
    'Open',
    async () => `House ${house}: windows were at ${await windows.call({ house }, 80)} %`,
  )
  const count = button('Last minute', async () => {
    let sum = 0
    let readings = 0
    for await (const { celsius } of history.stream({ house }, { minutes: 1 })) {
      sum += celsius
      readings += 1
    }
    return `House ${house}: ${readings} readings, ${(sum / readings).toFixed(1)} °C on average`
  })
  made.append(...texts.map(cell), open, count)
  return made
}

function show(): void {
  const entries = [...latest.getSnapshot().values()].sort((one, other) =>
    one.params.house.localeCompare(other.params.house),
  )
  table.replaceChildren(
    ...entries.map(({ params, value, stale }) =>
      row(params.house, [params.house, `${value.celsius} °C`, `${value.humidity} %`], stale),
    ),
  )
}

latest.subscribe(show)
show()
