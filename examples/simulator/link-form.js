/**
 * The button that makes a link to the settings, and what is done with a link that the page was opened by: it fills in the form, and starts nothing.
 */
import { write } from './figures.js'
import { fill, linkTo, valuesOf } from './sharing.js'

/** Prepares the button, and reads the link in the address. `parts` has the button, the field for the link and what is said about it. */
export function setUpLinks(fields, scenarios, { button, box, link, about }) {
  const say = (text, isBad = false) => {
    about.className = isBad ? 'note bad' : 'note'
    write(about, text)
  }
  button.addEventListener('click', async () => {
    try {
      link.value = await linkTo(location.href, fields, scenarios.own)
    } catch (error) {
      say(
        `There is no link for these settings: ${error.message}. “Save it” saves the description.`,
        true,
      )
      return
    }
    box.hidden = false
    link.select()
    const isCopied = await copied(link.value)
    say(
      `${isCopied ? 'Copied. ' : ''}The link has these settings, and no user name and no password.`,
    )
  })
  const read = async () => {
    if (location.hash.length <= 1) return
    if (fields.what.disabled) return say('The link was not read: stop the fleet before.', true)
    try {
      const wrong = fill(fields, await valuesOf(location.hash), (text) => {
        scenarios.own = text
      })
      if (wrong.length === 0) say('The settings are those of the link. Nothing has been started.')
      else say(`What the form does not take was left out of the link: ${wrong.join(', ')}.`, true)
    } catch (error) {
      say(`The link is broken: ${error.message}. The settings are as they were.`, true)
    }
  }
  addEventListener('hashchange', read)
  read()
}

// A browser may forbid it; then the text is there, and selected.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}
