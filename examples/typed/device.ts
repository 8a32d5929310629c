/** A house: measures every second, opens its windows when it is told to, and remembers. */
import { connect } from 'mqwire'
import { greenhouse, type Reading } from './contract.js'

/** Starts the device of a house; gives what stops it. */
export async function startDevice(url: string, house: string): Promise<() => Promise<void>> {
  const client = await connect(url, { clientId: `house-${house}` })
  const { climate, windows, history } = greenhouse.on(client)
  const readings: Reading[] = []
  let open = 0

  await windows.serve({ house }, ({ value }) => {
    const before = open
    open = Math.min(100, Math.max(0, value))
    return before
  })
  await history.serve({ house }, async function* ({ value }) {
    for (const reading of readings.slice(-value.minutes * 60)) yield reading
  })
  const measure = (): void => {
    const celsius = Math.round((26 - open / 20 + Math.random()) * 10) / 10
    const reading = { celsius, humidity: Math.round(70 - open / 5 + Math.random() * 4) }
    readings.push(reading)
    if (readings.length > 3600) readings.shift()
    climate.publish({ house }, reading).catch(() => undefined)
  }
  measure()
  const timer = setInterval(measure, 1000)
  return async () => {
    clearInterval(timer)
    await client.disconnect()
  }
}
