/**
 * One contract, three programs: serves a page with a table of the latest readings of greenhouses, next to their devices and a service that opens windows,
 * on a broker in this process.
 *
 *     npm run typed     prints the address; Ctrl-C stops
 *
 * It listens on this machine only. The package has to be built: `npm run typed` sees to that.
 */
import { fileURLToPath } from 'node:url'
import { MemoryBroker } from 'mqwire/testing'
import { argumentsOf } from '../arguments.js'

const { values } = argumentsOf({
  usage: 'npm run typed -- [options]',
  about:
    'Serves a page of greenhouses with a broker, devices and a service: one contract, in TypeScript, for all of them.',
  options: {
    port: {
      value: 'N',
      number: [0, 65_535],
      whole: true,
      initial: 5174,
      text: 'where it listens, or the next port that is free',
    },
  },
})

const broker = new MemoryBroker({ maxLog: 1000 })
const { urls } = await broker.serve({ tcp: 0, ws: 0 })
const [tcp, webSocket] = urls

// Takes its time, and whoever only asks for help need not wait for it.
const { createServer } = await import('vite')
const server = await createServer({
  root: fileURLToPath(new URL('.', import.meta.url)),
  configFile: false,
  // A server deletes what another one compiled into the same folder.
  cacheDir: fileURLToPath(new URL('../../node_modules/.vite/typed', import.meta.url)),
  // The package itself is linked, and may have been built a moment ago.
  optimizeDeps: { exclude: ['mqwire'] },
  server: { host: '127.0.0.1', port: values.port },
  logLevel: 'warn',
})
const { startDevice } = await server.ssrLoadModule('/device.ts')
const { startService } = await server.ssrLoadModule('/service.ts')
const stops = await Promise.all(['1', '2', '3'].map((house) => startDevice(tcp, house)))
stops.push(await startService(tcp, (line) => console.log(line)))
await server.listen()
const { port } = server.httpServer.address()
console.log(`The greenhouses are at http://127.0.0.1:${port}/?url=${webSocket}  (Ctrl-C stops)`)

// Vite would end the process before the devices and the broker have said goodbye.
process.removeAllListeners('SIGTERM')
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await Promise.all([...stops.map((stop) => stop()), server.close()])
    await broker.close()
    process.exit()
  })
}
