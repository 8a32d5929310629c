/**
 * Topic Names and Topic Filters (section 4.7): validity, shared subscriptions, matching.
 *
 * Peers choose these texts: every function walks them once, without recursion and without regular expressions.
 */
import { MAXIMUM_STRING_LENGTH } from './constants.js'
import { HASH, PLUS, SLASH, utf8Length } from './utf8.js'

const DOLLAR = 0x24

/** Whether the text holds `+` or `#`. */
export function hasWildcard(text: string): boolean {
  return text.includes('+') || text.includes('#')
}

/** Why the text is no Topic Name [MQTT-4.7.0-1] [MQTT-4.7.3-1], or `undefined` when it is one. */
export function validateTopicName(topic: string): string | undefined {
  return hasWildcard(topic) ? 'must not hold a wildcard' : validateText(topic)
}

/**
 * Why the text is no Topic Filter [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1], or `undefined` when it is one. A filter that begins with `$share/`
 * must be a whole shared subscription [MQTT-4.8.2-1] [MQTT-4.8.2-2].
 */
export function validateTopicFilter(filter: string): string | undefined {
  const fault = validatePlainFilter(filter)
  if (fault !== undefined || !isShared(filter)) return fault
  const share = parseShare(filter)
  return share === undefined || hasWildcard(share.shareName)
    ? 'must have a share name without wildcards and a filter'
    : undefined
}

/** The rules of section 4.7 alone, without shared subscriptions, which 3.1.1 does not know. */
export function validatePlainFilter(filter: string): string | undefined {
  return (
    validateText(filter) ??
    (hasStrayWildcard(filter)
      ? 'must have wildcards alone in their levels, and # at its end'
      : undefined)
  )
}

// With something else in its level, or `#` before anything at all.
function hasStrayWildcard(filter: string): boolean {
  return filter
    .split('/')
    .some((level, index, levels) =>
      level === '#' ? index + 1 < levels.length : level !== '+' && hasWildcard(level),
    )
}

function validateText(text: string): string | undefined {
  if (text === '') return 'must not be empty'
  return validateSize(text.length > MAXIMUM_STRING_LENGTH ? text.length : utf8Length(text))
}

/** Why a string of this many bytes, or {@link ILL_FORMED}, cannot be sent (section 1.5.4). */
export function validateSize(size: number): string | undefined {
  if (size > MAXIMUM_STRING_LENGTH) return 'must not exceed 65,535 bytes'
  return size < 0 ? 'must not hold U+0000 or a lone surrogate' : undefined
}

/** Whether the filter begins with `$share/` (section 4.8.2). */
export function isShared(filter: string): boolean {
  return filter.startsWith('$share/')
}

/** A shared subscription, taken apart (section 4.8.2). */
export interface Share {
  /** Names the group that shares the messages. */
  shareName: string
  /** The filter that they match. */
  filter: string
}

/** The parts of `$share/{ShareName}/{filter}` (section 4.8.2); `undefined` when a part is missing or the filter is not shared. */
export function parseShare(filter: string): Share | undefined {
  if (!isShared(filter)) return undefined
  const start = '$share/'.length
  const slash = filter.indexOf('/', start)
  const shared = filter.slice(slash + 1)
  return slash > start && shared !== ''
    ? { shareName: filter.slice(start, slash), filter: shared }
    : undefined
}

/**
 * Whether a valid Topic Filter matches a Topic Name; a shared one by the filter in it. Leading wildcards do not match topics that begin with `$`
 * [MQTT-4.7.2-1].
 */
export function matches(filter: string, topic: string): boolean {
  const pattern = parseShare(filter)?.filter ?? filter
  if (topic.charCodeAt(0) === DOLLAR && pattern.charCodeAt(0) !== DOLLAR) return false
  let at = 0
  let i = 0
  while (i < pattern.length) {
    const unit = pattern.charCodeAt(i)
    if (unit === HASH) return true
    if (unit === PLUS) {
      const slash = topic.indexOf('/', at)
      at = slash < 0 ? topic.length : slash
    } else if (at < topic.length && topic.charCodeAt(at) === unit) at++
    // `a/#` matches `a` too (section 4.7.1.2).
    else
      return (
        at === topic.length &&
        unit === SLASH &&
        i + 2 === pattern.length &&
        pattern.charCodeAt(i + 1) === HASH
      )
    i++
  }
  return at === topic.length
}
