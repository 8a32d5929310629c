/** Rigs that are ended with their test, and what became of them. */
import { expect, onTestFinished } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { quiet } from './incoming.js'
import { Rig, type RigOptions } from './rig.js'

/** A client that has not connected. At its end no timer may be left. */
export function rigged(options?: ClientOptions, more?: RigOptions): Rig {
  const rig = new Rig(options, more)
  onTestFinished(async () => {
    await rig.finish()
    expect(rig.clock.pending).toBe(0)
  })
  return rig
}

/** A connected client. */
export const up = (options?: ClientOptions, more?: RigOptions) => rigged(options, more).up()

/** Loses an established connection; what is dialled from then on does this, for so long. */
export async function lost(
  behave: Rig['behave'],
  time: number,
  options?: ClientOptions,
  more?: RigOptions,
): Promise<Rig> {
  const rig = await up(options, more)
  rig.behave = behave
  await rig.cut()
  await rig.advance(time)
  return rig
}

/** What a promise comes to in this time. */
export async function within<T>(rig: Rig, time: number, promise: Promise<T>): Promise<T> {
  quiet(promise)
  await rig.advance(time)
  return promise
}

/** What has happened so far. */
export function story(rig: Rig) {
  return {
    state: rig.client.state,
    /** One letter for each dial. */
    hosts: rig.hosts.join(''),
    times: rig.dials.map(({ at }) => at),
    delays: rig.delays,
    open: rig.open,
    failed: rig.seen('connecterror').map(({ error }) => error.code),
    lost: rig.seen('disconnect').map(({ cause }) => cause?.code),
  }
}

/** A field of each CONNECT. */
export const connects = <K extends string>(rig: Rig, name: K) =>
  rig.peers.map((peer) => (peer.last('connect') as unknown as Record<K, unknown>)[name])
