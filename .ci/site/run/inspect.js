/** Values as a console of Node prints them, within limits: three levels, a hundred entries, 72 columns. A value that throws when it is read is said so. */
const quoted = (text) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
const keyOf = (key) =>
  typeof key === 'symbol'
    ? `[${String(key)}]`
    : /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key)
      ? key
      : quoted(key)

function wrapped(prefix, [open, close], items) {
  const before = prefix === '' ? '' : `${prefix} `
  if (items.length === 0) return `${before}${open}${close}`
  const line = `${before}${open} ${items.join(', ')} ${close}`
  if (line.length <= 72 && !line.includes('\n')) return line
  return `${before}${open}\n${items.map((item) => `  ${item.replaceAll('\n', '\n  ')}`).join(',\n')}\n${close}`
}

function listed(values, size, show) {
  const items = []
  for (const value of values) {
    if (items.length === 100) return [...items, `... ${size - 100} more items`]
    items.push(show(value))
  }
  return items
}

/** The elements of an array, whose holes are counted. */
function elements(array, show) {
  const items = []
  let [index, filled] = [0, undefined]
  while (index < array.length && items.length < 100) {
    if (Object.hasOwn(array, index)) {
      items.push(show(array[index]))
      index += 1
      continue
    }
    filled ??= Object.keys(array).map(Number)
    const first = index
    index = filled.find((each) => each > first) ?? array.length
    items.push(`<${index - first} empty item${index - first === 1 ? '' : 's'}>`)
  }
  if (index < array.length) items.push(`... ${array.length - index} more items`)
  return items
}

/** What this gives, or a text in its place when it throws. */
export function attempt(show) {
  try {
    return show()
  } catch {
    return '[a value that cannot be read]'
  }
}

function errorText(error) {
  const { name, code, message } = error
  return `${name}${typeof code === 'string' ? ` ${code}` : ''}: ${message}`
}

const text = (value, above) => attempt(() => textOf(value, above))

function textOf(value, above) {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function')
    return `[${/^class\b/.test(String(value)) ? 'class' : 'Function:'} ${value.name || '(anonymous)'}]`
  if (typeof value !== 'object' || value === null)
    return Object.is(value, -0) ? '-0' : String(value)
  if (value instanceof Error) return errorText(value)
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof RegExp) return String(value)
  if (value instanceof URL) return `URL { href: ${quoted(value.href)} }`
  if (above.includes(value)) return '[Circular]'
  const name = value.constructor?.name ?? '[Object: null prototype]'
  if (above.length > 2) return Array.isArray(value) ? '[Array]' : `[${name}]`
  return compound(value, name, (each) => text(each, [...above, value]))
}

function compound(value, name, show) {
  if (Array.isArray(value)) return wrapped('', '[]', elements(value, show))
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return wrapped(`${name}(${value.length})`, '[]', listed(value, value.length, show))
  if (value instanceof Set)
    return wrapped(`Set(${value.size})`, '{}', listed(value, value.size, show))
  if (value instanceof Map) {
    const pair = ([key, each]) => `${show(key)} => ${show(each)}`
    return wrapped(`Map(${value.size})`, '{}', listed(value, value.size, pair))
  }
  const keys = Reflect.ownKeys(value).filter((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  )
  const field = (key) => {
    const { get } = Object.getOwnPropertyDescriptor(value, key)
    return `${keyOf(key)}: ${get === undefined ? show(value[key]) : '[Getter]'}`
  }
  return wrapped(name === 'Object' ? '' : name, '{}', listed(keys, keys.length, field))
}

const shown = (value) => (typeof value === 'string' ? value : text(value, []))

/** What a console prints of these values: texts as they are. */
export const printed = (values) => values.map(shown).join(' ')

const formats = {
  s: shown,
  d: (value) => text(Number(value), []),
  i: (value) => text(Number.parseInt(value, 10), []),
  f: (value) => text(Number.parseFloat(value), []),
  j: (value) => String(JSON.stringify(value)),
  o: (value) => text(value, []),
  O: (value) => text(value, []),
  c: () => '',
}

/** The same, where the first text may have places for the values behind it: `%s`, `%d` and others. */
export function formatted(all) {
  const [first, ...values] = all
  if (typeof first !== 'string' || values.length === 0) return printed(all)
  const line = first.replace(/%([%sdifjoOc])/g, (whole, format) => {
    if (format === '%') return '%'
    return values.length === 0 ? whole : attempt(() => formats[format](values.shift()))
  })
  return printed([line, ...values])
}

/** An error that ends a program: its kind, its code and its message. */
export const failure = (error) =>
  attempt(() => (error instanceof Error ? errorText(error) : `Uncaught ${text(error, [])}`))
