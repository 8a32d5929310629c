/**
 * Every public type of the client. Imports nothing else of the client. Types only.
 */

export type * from './events.js'
export type * from './hooks.js'
export type * from './message.js'
export type * from './message.js'
export type * from './negotiated.js'
export type * from './options.js'
export type * from './options.js'
export type * from './options.js'
export type * from './options.js'
export type * from './publish.js'
export type * from './reconnect.js'
export type * from './request.js'
export type * from './roles.js'
export type * from './stats.js'
export type * from './subscribe.js'
export type * from './subscribe.js'
