/**
 * Light, dark, or as the system: what was chosen is remembered. The colours stand in the style sheet; a canvas has to ask for them.
 */
import { byId } from './dom.js'

const key = 'mqwire-dashboard-theme'
const themes = ['auto', 'light', 'dark']

// Storage may be forbidden.
function remembered() {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function remember(theme) {
  try {
    localStorage.setItem(key, theme)
  } catch {
    // Then it holds for this page only.
  }
}

/** Prepares the switch; calls `changed` whenever the colours are others. */
export function setUpTheme(changed) {
  const choice = byId('theme')
  const found = remembered()
  choice.value = themes.includes(found) ? found : 'auto'
  const apply = () => {
    document.documentElement.dataset.theme = choice.value
    colours.clear()
    changed()
  }
  choice.addEventListener('change', () => {
    remember(choice.value)
    apply()
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply)
  apply()
}

const colours = new Map()

/** The colour that a custom property of the style sheet stands for just now, such as `--text`. */
export function colour(name) {
  let value = colours.get(name)
  if (value === undefined) {
    const probe = document.createElement('span')
    probe.style.color = `var(${name})`
    document.body.append(probe)
    value = getComputedStyle(probe).color
    probe.remove()
    colours.set(name, value)
  }
  return value
}

/** True for people who want less to move. */
export const wantsLessMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches
