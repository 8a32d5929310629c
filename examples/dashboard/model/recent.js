/**
 * The connections that were used last: address, topic filter, QoS and user name, kept in this browser.
 *
 * It must never keep a password, nor an address with one in it. What is stored may be anything: only what has the right form is read.
 */
import { withoutSecrets } from '../settings.js'

/** Connections that are kept, and characters of each text. */
export const limits = { connections: 8, characters: 2000 }

const key = 'mqwire-dashboard-connections'

const isText = (value) => typeof value === 'string' && value.length <= limits.characters

function isConnection(value) {
  if (typeof value !== 'object' || value === null) return false
  return (
    isText(value.url) &&
    isText(value.filter) &&
    isText(value.username) &&
    [0, 1, 2].includes(value.qos)
  )
}

/** The connections in a stored text, newest first. */
export function recentIn(text) {
  try {
    const list = JSON.parse(text)
    if (!Array.isArray(list)) return []
    return list.filter(isConnection).slice(0, limits.connections).map(plain)
  } catch {
    return []
  }
}

// These properties and no others, whatever the caller has besides.
const plain = ({ url, filter, qos, username }) => ({
  url: withoutSecrets(url),
  filter,
  qos,
  username,
})

/** The list with one more at its head; the same address, filter and user are there once. */
export function remembered(list, settings) {
  const latest = plain(settings)
  if (!isConnection(latest)) return list
  const others = list.filter(
    ({ url, filter, username }) =>
      url !== latest.url || filter !== latest.filter || username !== latest.username,
  )
  return [latest, ...others].slice(0, limits.connections)
}

/** What this browser has. Storage may be forbidden. */
export function readRecent() {
  try {
    return recentIn(localStorage.getItem(key) ?? '[]')
  } catch {
    return []
  }
}

/** Keeps a list; an empty one leaves nothing behind. */
export function writeRecent(list) {
  try {
    if (list.length === 0) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(list))
  } catch {
    // Then it holds for this page only.
  }
}
