/**
 * What the server says to bring a client into the states of the corpus.
 */
import { type Bytes, block, frame, join, string, u16 } from '../bytes.js'
import { ids } from '../case.js'
import { aliasProperty, dataProperty, methodProperty } from '../packets.js'

/** The lines of the server. */
export interface Script {
  readonly challenge: Bytes
  readonly connack: Bytes
  /** SUBACK of the first subscription. */
  readonly granted: Bytes
  /** One at QoS 1, which sets an alias on 5.0, and one at QoS 2. */
  readonly messages: Bytes
  /** One at QoS 2. */
  readonly message: Bytes
  readonly pubrec: Bytes
  /** Answered with PUBCOMP by whoever is still there. */
  readonly probe: Bytes
}

function make(version: 4 | 5, withMethod: boolean): Script {
  const five = version === 5
  const properties = (...list: Bytes[]): Bytes => (five ? block(...list) : [])
  const first = frame(0x32, string('known'), u16(ids.theirs1), properties(aliasProperty(2)))
  const message = frame(0x34, string('kept'), u16(ids.theirs2), properties())
  return {
    challenge: frame(0xf0, [0x18], block(methodProperty(), dataProperty(1))),
    connack: frame(0x20, [0, 0], properties(...(withMethod ? [methodProperty()] : []))),
    granted: frame(0x90, u16(1), properties(), [2]),
    messages: join(first, message),
    message,
    pubrec: frame(0x50, u16(ids.ours)),
    probe: frame(0x62, u16(ids.probe)),
  }
}

const made = new Map<string, Script>()

/** The script for a version, with or without an authentication method. */
export function script(version: 4 | 5, withMethod: boolean): Script {
  const key = `${version} ${withMethod}`
  const known = made.get(key) ?? make(version, withMethod)
  made.set(key, known)
  return known
}
