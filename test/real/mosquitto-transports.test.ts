/** Features on mosquitto over TLS, WebSocket and Unix sockets. */
import { transports } from './brokers.js'
import { onMosquitto } from './mosquitto.js'

onMosquitto(transports.filter((transport) => transport !== 'TCP'))
