/** What a page owes to those who use it with a keyboard, a screen reader or weak eyes, asked of the page itself. */
import type { Page } from 'playwright-core'

/** Roles of what one can use, or must be told of. */
const named = new Set([
  'button',
  'checkbox',
  'combobox',
  'image',
  'link',
  'listbox',
  'radio',
  'searchbox',
  'spinbutton',
  'switch',
  'table',
  'textbox',
])

/** Roles of everything that should have a name and has none, as the browser computes names. */
export async function nameless(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  await session.detach()
  const found = nodes.filter(({ ignored, role }) => !ignored && named.has(String(role?.value)))
  if (found.length === 0) throw new Error('nothing on the page has a role')
  return found
    .filter(({ name }) => String(name?.value ?? '').trim() === '')
    .map(({ role }) => String(role?.value))
}

/** Texts that stand out from their ground by less than 4.5 to 1, with how much it is. */
export async function faint(page: Page): Promise<string[]> {
  const [checked, found] = await page.evaluate(() => {
    type Colour = readonly [number, number, number, number]
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
    const read = (css: string): Colour => {
      if (canvas === null) throw new Error('no canvas')
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = css
      canvas.fillRect(0, 0, 1, 1)
      const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data
      return [red, green, blue, alpha / 255]
    }
    const over = ([r, g, b, a]: Colour, [x, y, z]: Colour): Colour => [
      r * a + x * (1 - a),
      g * a + y * (1 - a),
      b * a + z * (1 - a),
      1,
    ]
    const groundOf = (element: Element | null): Colour => {
      if (element === null) return [255, 255, 255, 1]
      const own = read(getComputedStyle(element).backgroundColor)
      return own[3] === 1 ? own : over(own, groundOf(element.parentElement))
    }
    const brightness = ([r, g, b]: Colour): number => {
      const [red = 0, green = 0, blue = 0] = [r, g, b].map((value) =>
        value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
      )
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
    const contrast = (element: Element, colour = getComputedStyle(element).color): number => {
      const ground = groundOf(element)
      const [one, other] = [brightness(over(read(colour), ground)), brightness(ground)]
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
    }
    const elements = [...document.body.querySelectorAll('*')].filter((element) => {
      const { width, height } = element.getBoundingClientRect()
      return width > 1 && height > 1 && element.checkVisibility({ visibilityProperty: true })
    })
    const texts = elements.filter((element) =>
      [...element.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent?.trim() !== '',
      ),
    )
    const results: string[] = []
    let count = 0
    const check = (element: Element, what: string, colour?: string): void => {
      count += 1
      const ratio = contrast(element, colour)
      if (ratio < 4.5)
        results.push(
          `${element.tagName.toLowerCase()} “${what.trim().slice(0, 40)}”: ${ratio.toFixed(2)}`,
        )
    }
    for (const element of texts) check(element, element.textContent ?? '')
    for (const element of elements.filter((each) => each.matches('input, select, textarea'))) {
      check(element, 'value')
      if (element.matches('[placeholder]'))
        check(element, 'placeholder', getComputedStyle(element, '::placeholder').color)
    }
    return [count, results] as const
  })
  if (checked < 20) throw new Error(`only ${checked} texts on the page`)
  return found
}

/** What has no visible focus among so many stops of the Tab key. */
export async function unseenFocus(page: Page, stops: number): Promise<string[]> {
  const unseen: string[] = []
  for (let stop = 0; stop < stops; stop++) {
    await page.keyboard.press('Tab')
    const problem = await page.evaluate(() => {
      const element = document.activeElement
      if (element === null || element === document.body) return undefined
      const { outlineStyle, outlineWidth } = getComputedStyle(element)
      return outlineStyle === 'none' || outlineWidth === '0px'
        ? `${element.tagName.toLowerCase()}#${element.id} ${element.textContent}`.slice(0, 80)
        : undefined
    })
    if (problem !== undefined) unseen.push(problem)
  }
  return unseen
}

/** Pixels by which the page is wider than its window. */
export const tooWide = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
