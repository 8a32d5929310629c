/** The timers of the worker, for everything but the program: the bundle puts them in place of the globals, which the worker replaces. */
const { setTimeout: later, setInterval: each, clearTimeout: clear } = globalThis

export const setTimeout = later.bind(globalThis)
export const setInterval = each.bind(globalThis)
export const clearTimeout = clear.bind(globalThis)
export const clearInterval = clearTimeout
