/**
 * The few things that every view does with elements. Text goes into the page as text, never as markup.
 */

/** The element with this id; the page has it. */
export const byId = (id) => document.getElementById(id)

/** A new element with properties and children; a child that is a string is text. */
export function make(tag, properties = {}, ...children) {
  const { dataset = {}, ...rest } = properties
  const element = Object.assign(document.createElement(tag), rest)
  Object.assign(element.dataset, dataset)
  element.append(...children)
  return element
}

/** Sets a text where it is another one: what does not change costs no layout and is not read aloud again. */
export function setText(element, text) {
  if (element.firstChild?.data !== text) element.textContent = text
}

/** Shows pairs of term and text in a `dl`, and touches only what changed. */
export function setFacts(list, facts) {
  while (list.children.length > facts.length) list.lastElementChild.remove()
  while (list.children.length < facts.length) list.append(make('div', {}, make('dt'), make('dd')))
  facts.forEach(([term, text], index) => {
    const [dt, dd] = list.children[index].children
    setText(dt, term)
    setText(dd, text)
  })
}

/** A time of day. */
export const timeOfDay = (milliseconds) =>
  new Date(milliseconds).toLocaleTimeString('en-GB', { hour12: false })

/** The same with milliseconds. */
export const exactTime = (milliseconds) =>
  `${timeOfDay(milliseconds)}.${String(Math.floor(milliseconds % 1000)).padStart(3, '0')}`
