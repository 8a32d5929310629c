/** Every feature, in the order in which they are begun: those that wait longest come first. */
import { links } from './features/links.js'
import { publishing } from './features/publishing.js'
import { retained } from './features/retained.js'
import { sessions } from './features/sessions.js'
import { subscribing } from './features/subscribing.js'
import { wills } from './features/wills.js'
import type { Feature } from './target.js'

export const features: readonly Feature[] = [...links, ...wills, ...publishing, ...retained, ...subscribing, ...sessions]
