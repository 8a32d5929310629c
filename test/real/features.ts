/** Every feature, in the order of the matrix. */
import { access } from './features/access.js'
import { connecting, transportFeatures } from './features/connecting.js'
import { expiry } from './features/expiry.js'
import { limits } from './features/limits.js'
import { links } from './features/links.js'
import { names } from './features/names.js'
import { publishing } from './features/publishing.js'
import { recovery } from './features/recovery.js'
import { retained } from './features/retained.js'
import { sessions } from './features/sessions.js'
import { subscribing } from './features/subscribing.js'
import { volume } from './features/volume.js'
import { wills } from './features/wills.js'
import { type Feature, suite, type Target } from './target.js'

/** What is run on each broker. */
const common: readonly Feature[] = [
  ...connecting,
  ...links,
  ...publishing,
  ...volume,
  ...names,
  ...retained,
  ...subscribing,
  ...wills,
  ...sessions,
  ...expiry,
  ...limits,
  ...access,
  ...recovery,
]

/** All rows of the matrix. */
export const features: readonly Feature[] = [...transportFeatures, ...common]

/**
 * Defines the tests of one target: of all features, of those that may depend on the transport, or of the essential ones. A lack of a feature that is
 * not run there does no harm; one of a feature that does not exist is a slip of the pen.
 */
export function run(target: Target, breadth: 'all' | 'most' | 'essential'): void {
  const known = features.map(({ name }) => name)
  for (const name of Object.keys(target.lacks))
    if (!known.includes(name)) throw new Error(`no feature is called '${name}'`)
  const own = transportFeatures.filter(({ name }) => name === `over ${target.transport}`)
  const reaches: readonly string[] = {
    all: ['everywhere', 'most', 'TCP'],
    most: ['everywhere', 'most'],
    essential: ['everywhere'],
  }[breadth]
  suite(target, [...own, ...common.filter(({ reach = 'most' }) => reaches.includes(reach))])
}
