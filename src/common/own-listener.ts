/**
 * Listeners of the library itself. The program does not hear what only they receive, so an
 * unexpected end of a client is then reported.
 */

const own = /* @__PURE__ */ new WeakSet<object>()

/** Marks a listener and returns it. */
export function ownListener<T>(listener: (event: T) => void): (event: T) => void {
  own.add(listener)
  return listener
}

/** True for a marked listener. */
export function isOwn(listener: object): boolean {
  return own.has(listener)
}
