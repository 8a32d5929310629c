/**
 * SASLprep (RFC 4013): converts equivalent user names and passwords to one form.
 *
 * Covered: mapping, NFKC, prohibited characters. Not covered: the rule on mixed right-to-left text
 * and the code points that Unicode 3.2 left unassigned (both only refuse texts that a server would
 * not accept either). Errors never contain the text.
 */
import { MqttError } from '../errors.js'

/** RFC 3454, B.1. */
const mappedToNothing =
  /[\u00ad\u1806\u200b-\u200d\u2060\ufeff]|\u034f|[\u180b-\u180d]|[\ufe00-\ufe0f]/gu

/** RFC 3454, C.1.2, except U+200B, which is mapped to nothing. */
const spaces = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/gu

/** RFC 3454, C.2.1 to C.9, except characters that mapping or normalisation removes. */
const prohibited =
  /[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u06dd\u070f\u180e\u200e\u200f\u2028-\u202e\u2061-\u2063\u206a-\u206f\u2ff0-\u2ffb\ufff9-\ufffd\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}]/u

/**
 * The prepared form. `option` names the text in errors.
 * @throws MqttError ERR_INVALID_OPTION when it becomes empty, or contains prohibited characters
 */
export function saslprep(text: string, option: string): string {
  const prepared = text.replace(mappedToNothing, '').replace(spaces, ' ').normalize('NFKC')
  if (prepared === '' || prohibited.test(prepared)) {
    const expected =
      'text that is not empty and holds no control, private or other character that SASLprep prohibits'
    throw new MqttError('ERR_INVALID_OPTION', `${option} must be ${expected}`, { option })
  }
  return prepared
}
