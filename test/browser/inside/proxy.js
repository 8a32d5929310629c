/** Stands in for the proxy that resets: it runs beside the broker, where it is told from here. */
export async function startProxy({ port, seed, meanBytes }) {
  const { number, url } = await globalThis.proxyTo({ port, seed, meanBytes })
  let resets = 0
  const asked = setInterval(async () => {
    resets = await globalThis.controlProxy(number, 'resets')
  }, 20)
  return {
    url,
    get resets() {
      return resets
    },
    calm: () => globalThis.controlProxy(number, 'calm'),
    async stop() {
      clearInterval(asked)
      await globalThis.controlProxy(number, 'stop')
    },
  }
}
