/**
 * What every room of one client works with: the world, the options, the session, and whom to tell. Types only.
 *
 * It names no part of another room; what a room needs of those stands in its own `ports.ts`.
 */

import type { Counters } from '../../common/counters.js'
import type { Emitter } from '../../common/emitter.js'
import type { Config } from '../options/check-options.js'
import type { ClientEvents, Logger } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { ReportCode } from '../reports.js'
import type { Session } from '../session/session.js'
import type { HookChain } from './hooks.js'

/** One client, as all of its parts know it. */
export interface ClientContext {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly events: Emitter<ClientEvents>
  /** Undefined unless the `stats` option is on. */
  readonly counters: Counters | undefined
  /** Undefined until one is used. */
  readonly hooks: HookChain | undefined
  /** The parts are made text only where there is a listener. */
  log(level: keyof Logger, ...parts: readonly unknown[]): void
  /** Logs what the program should know. Without a logger, and without a listener of `heard`, it is reported: see `platform/reports.ts`. */
  report(
    code: ReportCode,
    text: string | (() => string),
    cause: unknown,
    heard?: keyof ClientEvents,
    count?: number,
  ): void
}
