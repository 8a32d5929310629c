/** The certificates of the brokers that the features are run on: an authority, and a server of its. Made once for each test file. */
import { type Identity, issue, selfSigned } from '../support/certificates.js'

let made: { readonly authority: Identity; readonly server: Identity } | undefined

/** It assumes that there is `openssl`. */
export function identities(): { readonly authority: Identity; readonly server: Identity } {
  if (made === undefined) {
    const authority = selfSigned('authority')
    made = { authority, server: issue(authority) }
  }
  return made
}
