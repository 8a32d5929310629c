/** Every feature on mosquitto over TCP: what the gate has of real brokers. */
import { onMosquitto } from './mosquitto.js'

await onMosquitto('TCP')
