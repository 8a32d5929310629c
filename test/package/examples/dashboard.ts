/** The modules of the dashboard, and messages as it sees them. */
import { exampleModule } from './program.js'

/** A module of the dashboard. */
export const dashboard = (name: string) => exampleModule(`dashboard/${name}`)

/** A message with this payload. */
export function message(topic: string, content: string | Uint8Array = '', more: object = {}) {
  const payload = typeof content === 'string' ? new TextEncoder().encode(content) : content
  const json = (): unknown => JSON.parse(new TextDecoder().decode(payload))
  return {
    topic,
    payload,
    payloadLength: payload.length,
    qos: 0,
    retain: false,
    properties: {},
    json,
    ...more,
  }
}
