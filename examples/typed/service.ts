/** The gardener: watches every house, and opens windows where it is too warm. */
import { connect, MqttError } from 'mqwire'
import { greenhouse } from './contract.js'

/** Starts the service; gives what stops it. */
export async function startService(
  url: string,
  log: (line: string) => void,
): Promise<() => Promise<void>> {
  const client = await connect(url, { clientId: 'gardener' })
  client.on('invalid', ({ topic, error }) => log(`${topic}: ${error.message}`))
  const { climate, windows } = greenhouse.on(client)
  await climate.listen({}, async ({ params, value }) => {
    if (value.celsius <= 25) return
    try {
      const before = await windows.call(params, 40, { timeout: 2000 })
      if (before < 40)
        log(`house ${params.house}: ${value.celsius} °C, windows from ${before} % to 40 %`)
    } catch (error) {
      log(`house ${params.house}: ${MqttError.is(error) ? error.code : error}`)
    }
  })
  return () => client.disconnect()
}
