/**
 * The names of events, and listeners by them, as callers give them.
 */

import { anyObject, assertHandler, type Parser, settingsIn, unknown } from '../../common/schema.js'
import { textOf } from '../../errors.js'
import type { ClientEvents, ClientListeners } from './index.js'

/** Every event. */
const events =
  'state,connect,disconnect,connecterror,reconnecting,dial,serverdisconnect,sessionlost,drop,stalled,late,unclaimed,recovered,storecorrupt,error,invalid,packet'.split(
    ',',
  )

/** Checks the name of an event; `path` names it in errors. */
export function eventName<K extends keyof ClientEvents>(type: K, path = 'type'): K {
  return events.includes(type) ? type : unknown(path, 'event', textOf(type), [...events, 'message'])
}

/** Listeners by event. */
export const listeners: Parser<ClientListeners> = (value, path) => {
  const given: Record<string, unknown> = { ...anyObject(value, path) }
  for (const type of settingsIn(given))
    assertHandler(
      given[eventName(type as keyof ClientEvents, `${path}.${type}`)],
      `${path}.${type}`,
    )
  return given
}
