/**
 * `mqwire/compat`: `connect()` of MQTT.js over a client of mqwire, so that a program moves by one import.
 *
 * It uses of the package what everybody may import, two symbols, and checks of options. The default export is the module itself, for `import mqtt from 'mqwire/compat'`.
 */
import * as mqtt from './mqtt.js'

export * from './mqtt.js'
export default mqtt
