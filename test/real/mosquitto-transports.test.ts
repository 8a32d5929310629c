/** The features on mosquitto over the other transports. */
import { onMosquitto } from './mosquitto.js'

await onMosquitto('WebSocket', 'TLS', 'Secure WebSocket', 'Unix socket')
