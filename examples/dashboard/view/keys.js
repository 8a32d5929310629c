/**
 * Keys that work anywhere on the page but in a field. They can be turned off, for people whose software types for them (WCAG 2.1.4).
 */
import { byId } from './dom.js'

const stored = 'mqwire-dashboard-keys'

// Storage may be forbidden.
function remembered() {
  try {
    return localStorage.getItem(stored) !== 'off'
  } catch {
    return true
  }
}

function remember(isOn) {
  try {
    if (isOn) localStorage.removeItem(stored)
    else localStorage.setItem(stored, 'off')
  } catch {
    // Then it holds for this page only.
  }
}

/** Sets up the keys; `also` has further ones: key to what it does. */
export function setUpKeys(also) {
  const actions = {
    '/': () => byId('search').focus(),
    t: () => byId('tree').click(),
    ...also,
  }
  const isOn = byId('keys')
  isOn.checked = remembered()
  isOn.addEventListener('change', () => remember(isOn.checked))
  addEventListener('keydown', (event) => {
    const { key, target } = event
    if (!isOn.checked || event.repeat || event.altKey || event.ctrlKey || event.metaKey) return
    if (!Object.hasOwn(actions, key) || document.querySelector('dialog[open]') !== null) return
    if (target.matches('input:not([type="checkbox"], [type="radio"]), textarea, select')) return
    event.preventDefault()
    actions[key]()
  })
}
