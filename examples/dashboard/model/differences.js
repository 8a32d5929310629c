/**
 * What changed between two texts, line by line. Pure.
 */
import { diffLines } from 'diff'

/** Lines that may have changed; of texts that differ in more, all of the new one is shown. */
const most = 2000

/** Lines `{ mark, text }` of both texts; the mark is `'+'` for a new line, `'-'` for one that is gone, and a blank for others. */
export function differences(before, after) {
  const parts = diffLines(closed(before), closed(after), { maxEditLength: most })
  if (parts === undefined) return linesOf(after).map((text) => ({ mark: '+', text }))
  return parts.flatMap(({ value, added, removed }) => {
    const mark = added ? '+' : removed ? '-' : ' '
    return linesOf(value).map((text) => ({ mark, text }))
  })
}

// A last line without its end would differ from the same one with it.
const closed = (text) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
const linesOf = (text) => closed(text).split('\n').slice(0, -1)
