/**
 * Which blocks of code a page of the site can run, decided from the block itself: what it imports, and which globals it uses.
 *
 * Pure. `docs-pages.mjs` asks it for each fence, and `bundle.mjs` builds the modules that it names.
 */

/** Every module that a program on a page may import. */
export const modules = [
  'mqwire',
  ...['asyncapi', 'auth', 'aws', 'compat', 'group', 'pool', 'queue', 'store', 'store/level'],
  ...['testing', 'tracing', 'typed', 'typed/cbor', 'typed/msgpack', 'wasm', 'wire'],
  ...['memory', 'message-port', 'websocket'].map((name) => `transport/${name}`),
  ...['@opentelemetry/api', 'cbor-x', 'msgpackr', 'zod'],
].map((name) => (/^(?:mqwire|@|cbor-x|msgpackr|zod)/.test(name) ? name : `mqwire/${name}`))

/** The file that has a module, below the folder `run` of the site. */
export const fileOf = (name) => `${name.replace('@', '')}.js`

const importing = /^import\b[^'"\n]*?(?:\{[^}]*\}[^'"\n]*?)?['"]([^'"]+)['"]/gm

/**
 * - `ends`: a page can run it, and it ends by itself.
 * - `runs`: a page can run it; it may wait until it is stopped.
 * - `node`: it imports what a page does not have, or uses a global of Node.
 * - undefined: no program, or only a part of one: something is declared, given in a comment, or fetched from a server of the reader.
 *
 * @param info what stands behind the fence: `ts`, `ts run`, `js`
 */
export function kindOf(info, code, isGiven = false) {
  if (!/^(?:ts|js)\b/.test(info)) return undefined
  const names = [...code.matchAll(importing)].map(([, name]) => name)
  if (names.length === 0 || isGiven) return undefined
  // `process` has a stand-in there, for its environment and its signals.
  if (!names.every((name) => modules.includes(name)) || /\bBuffer[.(]|process\.exit\(/.test(code))
    return 'node'
  if (/^declare |\bfetch\(/m.test(code)) return undefined
  const isTagged = info === 'ts run'
  return isTagged || (info === 'js' && !code.includes('process.once(')) ? 'ends' : 'runs'
}
