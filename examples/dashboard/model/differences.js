/**
 * What changed between two texts, line by line. Pure.
 */
import { diffLines } from 'diff'

/** Lines that may have changed; of texts that differ in more, all of the new one is shown. */
const most = 2000

/** Pieces `{ mark, text }` of both texts, each line behind its mark: `'+'` for new ones, `'-'` for those that are gone, and a blank for others. */
export function differences(before, after) {
  const parts = diffLines(closed(before), closed(after), { maxEditLength: most }) ?? [
    { value: closed(after), added: true },
  ]
  return parts.map(({ value, added, removed }) => {
    const mark = added ? '+' : removed ? '-' : ' '
    return { mark, text: value.replace(/^/gm, `${mark} `).replace(/\n. $/, '\n') }
  })
}

// A last line without its end would differ from the same one with it.
const closed = (text) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
