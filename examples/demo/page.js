/**
 * The dashboard of the demo: served on this machine, and opened with the address of the broker and the topics of the demo.
 *
 * The demo does not depend on it: where it cannot be served, that is said and nothing else changes.
 */
import { serveDashboard } from '../dashboard/serve.js'
import { withoutSecrets } from '../dashboard/settings.js'

/** A page reaches a broker over WebSocket only. Undefined when no address for that is known; never with what may be secret. */
function webSocketOf({ urls }) {
  const found = urls.find((each) => ['ws:', 'wss:'].includes(new URL(each).protocol))
  if (found === undefined) return undefined
  const [address] = withoutSecrets(found).split('?')
  const { username, search } = new URL(found)
  return { address, more: username !== '' || search !== '' }
}

/** Serves it, unless it is not wanted. Gives what is to be told of it, in lines, and what stops it. */
export async function servePage({ dashboard, port }, broker) {
  if (!dashboard) return { lines: [], stop: async () => {} }
  let page
  try {
    page = await serveDashboard({ port })
  } catch (error) {
    return { lines: [`not served: ${error.message}`], stop: async () => {} }
  }
  const settings = { topic: 'mqwire-demo/#', qos: '0', publish: 'mqwire-demo/hello' }
  const found = webSocketOf(broker)
  const { stop } = page
  if (found === undefined)
    return {
      lines: [
        page.address(settings),
        'MQTT_URL is no WebSocket address, which is all that a page can use: give it that of your broker.',
      ],
      stop,
    }
  const lines = [page.address({ url: found.address, ...settings })]
  return {
    lines: found.more
      ? [...lines, 'User name, password and query of MQTT_URL are to be filled in there.']
      : lines,
    stop,
  }
}
