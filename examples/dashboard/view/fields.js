/** The fields of a form as values, and back. Those outside the form belong to it by their attribute `form`. */

const named = (form) => [...form.elements].filter(({ name }) => name !== '')

/** What a form says, by name: a check box is true or false, a number is one, and so is a QoS. */
export const valuesOf = (form) =>
  Object.fromEntries(
    named(form).map(({ name, type, value, checked }) => {
      if (type === 'checkbox') return [name, checked]
      return [
        name,
        /^(?:qos|willQoS|keepAlive|sessionExpiryInterval)$/.test(name) ? Number(value) : value,
      ]
    }),
  )

/** Fills a form; what has no value is left as it is. */
export function fill(form, values) {
  for (const field of named(form)) {
    const value = values[field.name]
    if (value === undefined) continue
    if (field.type === 'checkbox') field.checked = value
    else field.value = String(value)
  }
}
