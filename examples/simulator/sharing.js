/**
 * Links that have the settings of the form in them: JSON, compressed, in the part behind the #, which a browser sends to no server.
 *
 * A link comes from anyone: whatever it says is held to the form's own rules, its size is bounded, and it starts nothing.
 */
import { withoutSecrets } from '../dashboard/settings.js'

/** Characters of a link's last part; characters of what it unfolds to. */
const longestHash = 32_768
const longestText = 400_000
const begin = '#s='

async function through(stream, bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader()
  const parts = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer())
    size += value.length
    if (size > most) {
      await reader.cancel()
      throw new RangeError('it is too long')
    }
    parts.push(value)
  }
}

/** The last part of a link to these values. @throws RangeError when they are too long for one */
export async function hashOf(values) {
  const text = new TextEncoder().encode(JSON.stringify(values))
  const bytes = await through(new CompressionStream('deflate-raw'), text, longestHash)
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  const hash = `${begin}${letters.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
  if (hash.length > longestHash || text.length > longestText) throw new RangeError('it is too long')
  return hash
}

/** The values of a link: an object, and nothing else is known of it. @throws Error that says what is wrong */
export async function valuesOf(hash) {
  if (!hash.startsWith(begin)) throw new Error(`it does not begin with ${begin}`)
  if (hash.length > longestHash) throw new Error('it is too long')
  const letters = hash.slice(begin.length).replaceAll('-', '+').replaceAll('_', '/')
  try {
    const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0))
    const text = await through(new DecompressionStream('deflate-raw'), bytes, longestText)
    const values = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text))
    if (typeof values === 'object' && values !== null && !Array.isArray(values)) return values
  } catch (error) {
    if (error instanceof RangeError) throw error
  }
  throw new Error('it is cut off, or was changed')
}

/** Which fields a link has, by what the devices do. Never one for a password, and no user name. */
const names = {
  fleet: ['devices', 'rate', 'qos', 'payload', 'ramp', 'line', 'topic', 'template', 'clientid'],
  scenario: ['devices', 'ramp', 'line', 'seed', 'prefix'],
}
const namesFor = (what) => names[what === 'fleet' ? 'fleet' : 'scenario']

/** The link to what the form says now, at the address of the page. */
export async function linkTo(address, fields, own) {
  const values = { what: fields.what.value }
  for (const name of namesFor(values.what))
    if (isShown(fields[name])) values[name] = fields[name].value
  if (own !== undefined) values.description = own
  const url = new URL(address)
  const broker = url.searchParams.get('url')
  if (broker !== null) url.searchParams.set('url', withoutSecrets(broker))
  return `${url.origin}${url.pathname}${url.search}${await hashOf(values)}`
}

/** Fills in the form; gives the names of what cannot be used, which stays as it was. */
export function fill(fields, { what, ...values }, setOwn) {
  const given = (name) => (typeof values[name] === 'string' ? values[name] : undefined)
  const isKnown = [...fields.what.options].some(({ value }) => value === what)
  if (!isKnown) return ['what']
  const { description = '' } = values
  const isTaken =
    typeof description === 'string' && description.length <= fields.description.maxLength
  if (what !== 'own') set(fields.what, what)
  else if (isTaken) setOwn(description)
  else return ['description']
  const known = [...namesFor(what), 'description']
  const strange = Object.keys(values).filter(
    (name) => !known.includes(name) || typeof values[name] !== 'string',
  )
  const wrong = namesFor(what).filter((name) => {
    const value = given(name)
    const field = fields[name]
    if (value === undefined || !isShown(field)) return false
    const before = field.value
    const isTooLong = field.maxLength > 0 && value.length > field.maxLength
    if (!isTooLong) set(field, value)
    if (!isTooLong && field.value === value && field.validity.valid) return false
    set(field, before)
    return true
  })
  return [...strange, ...wrong]
}

// A field that is not for this broker is hidden, with what is around it.
const isShown = (field) => !field.matches('[hidden] *')

function set(field, value) {
  field.value = value
  for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }))
}
