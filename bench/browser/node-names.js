/**
 * Names of Node that the peers expect in a page. mqwire needs none of them.
 */
import { Buffer } from 'buffer/'

export { Buffer }
export const process = {
  env: {},
  nextTick: (callback, ...given) => queueMicrotask(() => callback(...given)),
  version: '',
  browser: true,
}
