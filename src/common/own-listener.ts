/**
 * Listeners of the library itself. The program does not hear what only they receive, so an
 * unexpected end of a client is then reported.
 */

const own = /* @__PURE__ */ new WeakMap<object, () => boolean>()

/**
 * Marks a listener and returns it.
 *
 * @param informs whether the program hears of an end through it right now; by default never
 */
export function ownListener<T>(
  listener: (event: T) => void,
  informs: () => boolean = () => false,
): (event: T) => void {
  own.set(listener, informs)
  return listener
}

/** Gives a listener that stands for another one its mark. */
export function markAs(entry: object, listener: object): void {
  const informs = own.get(listener)
  if (informs !== undefined) own.set(entry, informs)
}

/** True for a listener of the program, and for one through which the program hears of an end. */
export function isHeard(listener: object): boolean {
  return own.get(listener)?.() ?? true
}
