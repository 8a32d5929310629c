/**
 * `mqwire/compat`: `connect()` of MQTT.js over an mqwire client, so that a program migrates by
 * changing one import.
 *
 * It uses only the public entry of the package, two symbols, and checks of options. The default
 * export is the module itself, for `import mqtt from 'mqwire/compat'`.
 *
 * @module
 */
import * as mqtt from './mqtt.js'

export * from './mqtt.js'
export default mqtt
