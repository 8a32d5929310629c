/** Targets, pairs and open connections for the tests of transports. */
import { onTestFinished } from 'vitest'
import type { Accept, Dial, Listener, Target, Transport } from '../../../src/transport/transport.js'
import type { Pair } from './contract.js'
import { Recorder } from './recorder.js'

export function target(url: string, parts: Partial<Omit<Target, 'url'>> = {}): Target {
  return { url: new URL(url), tls: {}, socket: {}, headers: {}, protocols: ['mqtt'], ...parts }
}

export const { signal: never } = new AbortController()

/** What a recorder opens now is destroyed with the test. */
export function openedOver(transport: Transport): Recorder {
  const recorder = new Recorder(transport).open()
  onTestFinished(async () => {
    recorder.destroy()
    await recorder.untilClosed()
  })
  return recorder
}

export async function opened(
  dial: Dial,
  url: string,
  {
    maximumPacketSize,
    ...parts
  }: Partial<Omit<Target, 'url'>> & { maximumPacketSize?: number } = {},
): Promise<Recorder> {
  const limit = maximumPacketSize === undefined ? {} : { maximumPacketSize }
  return openedOver(await dial(target(url, parts), { signal: never, ...limit }))
}

/** Listens, dials once and gives both ends. */
export async function dialledPair(
  listen: (accept: Accept) => Promise<Listener>,
  dial: Dial,
  parts: Partial<Omit<Target, 'url'>> = {},
): Promise<Pair> {
  let accepted: (transport: Transport) => void = () => {}
  const far = new Promise<Transport>((resolve) => {
    accepted = resolve
  })
  const listener = await listen((transport) => accepted(transport))
  const a = await dial(target(listener.url, parts), { signal: never })
  return { a, b: await far, cleanup: () => listener.close() }
}

export async function failure(
  promise: Promise<unknown>,
): Promise<Error & { code?: unknown; reason?: unknown; option?: unknown }> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
    throw new Error(`Rejected with something that is no error: ${String(error)}`)
  }
  throw new Error('It did not reject')
}
