/** Every feature, in the order of the matrix. */
import { connecting, connections, transportFeatures } from './features/connecting.js'
import { access, limits } from './features/limits.js'
import { aliases, publishing } from './features/publishing.js'
import { recovery } from './features/recovery.js'
import { expiry, sessions, wills } from './features/sessions.js'
import { names, retained, subscribing } from './features/subscribing.js'
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
