/** Every feature on mosquitto over TCP: the one real broker of `npm test`. */
import { onMosquitto } from './mosquitto.js'

onMosquitto(['TCP'])
