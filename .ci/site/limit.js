/** How much of its output a program may show: a page that showed it all would stand still. The worker holds it, and the page does not trust that. */
const most = { lines: 2000, letters: 200_000, inOne: 10_000 }

/** Called with each text that is printed: what of it is shown. Undefined when the output is full, which is said once. `factor` widens the limits. */
export function limit(factor = 1) {
  let [lines, letters, isFull] = [0, 0, false]
  return (text) => {
    if (isFull) return undefined
    const cut = text.slice(0, most.inOne)
    lines += cut.split('\n').length
    letters += cut.length
    isFull = lines > most.lines * factor || letters > most.letters * factor
    return isFull ? 'What comes after this is not shown: there is too much of it.' : cut
  }
}
