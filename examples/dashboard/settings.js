/**
 * Where to connect to, as the address of the page says it: `?url=ws://host:port&topic=plant/%23&qos=1`. Pure.
 *
 * A password is never part of an address: what stands in one is left out when it is written, and there is no parameter for it.
 */

/** What the form begins with. */
const standard = { url: '', filter: '#', qos: 1, publish: 'hello' }

/** Reads the query of an address. */
export function readSettings(search) {
  const parameters = new URLSearchParams(search)
  const qos = Number(parameters.get('qos') ?? standard.qos)
  return {
    url: parameters.get('url') ?? standard.url,
    filter: parameters.get('topic') ?? standard.filter,
    qos: [0, 1, 2].includes(qos) ? qos : standard.qos,
    publish: parameters.get('publish') ?? standard.publish,
  }
}

/** The query that leads back to these settings. */
export function writeSettings({ url, filter, qos, publish = standard.publish }) {
  const parameters = new URLSearchParams({
    url: withoutSecrets(url),
    topic: filter,
    qos: String(qos),
  })
  if (publish !== standard.publish) parameters.set('publish', publish)
  return `?${parameters}`
}

/** The filters in a text: `a/#, b/+ @2` has two, of which the second has a QoS of its own. */
export function filtersIn(text, qos) {
  return text.split(', ').map((part) => {
    const [, filter, own] = /^(.*?)(?: @([012]))?$/s.exec(part.trim())
    return { filter, qos: Number(own ?? qos) }
  })
}

/**
 * A URL without user name, password and query, where tokens stand. What is before an @ may be a password with a sign that an address cannot have.
 */
export function withoutSecrets(url) {
  const safe = url.replace(/^(\w+:\/\/)?.*@/s, '$1')
  if (!URL.canParse(safe)) return safe
  const parsed = new URL(safe)
  parsed.search = ''
  parsed.hash = ''
  return parsed.href.replace(/^(\w+:\/\/[^/?#]+)\/$/, '$1')
}
