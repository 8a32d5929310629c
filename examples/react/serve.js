/**
 * Serves the React example with all that it needs: a broker in this process, a device that publishes the time, and vite, which compiles the page.
 *
 *     npm run react     prints the address; Ctrl-C stops
 *
 * It listens on this machine only. The package has to be built: `npm run react` sees to that.
 */
import { fileURLToPath } from 'node:url'
import { connect } from 'mqwire'
import { MemoryBroker } from 'mqwire/testing'
import { argumentsOf } from '../arguments.js'

const { values } = argumentsOf({
  usage: 'npm run react -- [options]',
  about: 'Serves the React example, with a broker and a device that publishes the time.',
  options: {
    port: {
      value: 'N',
      number: [0, 65_535],
      whole: true,
      initial: 5173,
      text: 'where it listens, or the next port that is free',
    },
  },
})

const broker = new MemoryBroker({ maxLog: 1000 })
const { urls } = await broker.serve({ tcp: 0, ws: 0 })
const [tcp, webSocket] = urls

const device = await connect(tcp, { clientId: 'clock' })
const tell = () =>
  device
    .publish('react/clock', new Date().toLocaleTimeString('en-GB'), { retain: true })
    .catch(() => {})
await tell()
const timer = setInterval(tell, 1000)

// Takes its time, and whoever only asks for help need not wait for it.
const { createServer } = await import('vite')
const server = await createServer({
  root: fileURLToPath(new URL('.', import.meta.url)),
  configFile: false,
  // A server deletes what another one compiled into the same folder.
  cacheDir: fileURLToPath(new URL('../../node_modules/.vite/react', import.meta.url)),
  // The package itself is linked, and may have been built a moment ago.
  optimizeDeps: { exclude: ['mqwire'] },
  server: { host: '127.0.0.1', port: values.port },
  logLevel: 'warn',
})
await server.listen()
const { port } = server.httpServer.address()
console.log(`The React example is at http://127.0.0.1:${port}/?url=${webSocket}  (Ctrl-C stops)`)

// Vite would end the process before the device and the broker have said goodbye.
process.removeAllListeners('SIGTERM')
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    clearInterval(timer)
    await Promise.all([device.disconnect({ timeout: 0 }), server.close()])
    await broker.close()
    process.exit()
  })
}
