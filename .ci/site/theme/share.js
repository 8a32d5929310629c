/** A program in the hash of an address: deflated, in base64url. Both directions have a limit, because an address can come from a stranger. */
const mostBytes = 64 * 1024
const mostLetters = 32 * 1024

/** Bytes of a stream. @throws RangeError when it is longer than a program may be */
async function bytesOf(stream) {
  const parts = []
  let size = 0
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read()
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer())
    parts.push(value)
    size += value.length
    if (size > mostBytes) {
      reader.cancel().catch(() => {})
      throw new RangeError('it is too long')
    }
  }
}

const through = (bytes, stream) => bytesOf(new Blob([bytes]).stream().pipeThrough(stream))

/** The hash of a program. @throws RangeError when it is too long for an address */
export async function hashOf(program) {
  const text = new TextEncoder().encode(program)
  const bytes = await through(text, new CompressionStream('deflate-raw'))
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  if (text.length > mostBytes || letters.length > mostLetters)
    throw new RangeError('it is too long')
  return `#code=${letters.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** The program of a hash; undefined when it has none. Rejects when it is damaged or too long. */
export async function programIn(hash) {
  const [, letters] = /^#code=(.*)$/.exec(hash) ?? []
  if (letters === undefined) return undefined
  if (letters.length > mostLetters) throw new RangeError('it is too long')
  const bytes = Uint8Array.from(atob(letters.replaceAll('-', '+').replaceAll('_', '/')), (letter) =>
    letter.charCodeAt(0),
  )
  const text = await through(bytes, new DecompressionStream('deflate-raw'))
  return new TextDecoder('utf-8', { fatal: true }).decode(text)
}
