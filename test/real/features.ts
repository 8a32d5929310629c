/** Every feature, in the order of the matrix. */
import { access } from './features/access.js'
import { aliases } from './features/aliases.js'
import { connecting, transportFeatures } from './features/connecting.js'
import { expiry } from './features/expiry.js'
import { limits } from './features/limits.js'
import { connections } from './features/links.js'
import { names } from './features/names.js'
import { publishing } from './features/publishing.js'
import { recovery } from './features/recovery.js'
import { retained } from './features/retained.js'
import { sessions } from './features/sessions.js'
import { subscribing } from './features/subscribing.js'
import { wills } from './features/wills.js'
import type { Feature } from './target.js'

export const features: readonly Feature[] = [
  ...transportFeatures,
  ...connecting,
  ...connections,
  ...publishing,
  ...aliases,
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
