/**
 * Fuzz target `client`: an application and a hostile peer, both made from the input, around a whole client under virtual time.
 *
 * Nothing is thrown but by calls of the API, every promise settles once the client is destroyed, and what it holds stays within its limits. Two
 * runs that differ in how the server's bytes are cut must tell the same story. Needs microtasks, never a clock.
 */

import { MqttError } from '../../src/errors.js'
import type { Defect } from '../support/defective.js'
import { Program } from './client-program.js'
import { ClientRun, catchStrays } from './client-run.js'
import { readSetup } from './client-setup.js'
import { check, OracleError, shownError } from './oracle.js'
import { Tape } from './tape.js'

let caught = false

/** One input. Rejects with an OracleError. @param defect what is wrong with the client, which has to be found */
export async function run(bytes: Uint8Array, defect?: Defect): Promise<void> {
  if (!caught) catchStrays()
  caught = true
  const whole = await play(bytes, false, defect)
  if (whole === undefined || !whole.setup.comparable) return
  const cut = await play(bytes, true, defect)
  if (cut !== undefined) checkSame(whole, cut)
}

/** The program of an input, in words. */
export async function describeProgram(bytes: Uint8Array): Promise<string> {
  const tape = new Tape(bytes)
  const setup = readSetup(tape)
  const run = new ClientRun(setup, false)
  const program = new Program(run, tape)
  await program.play().catch(() => undefined)
  run.client.destroy()
  const { auth, will, credentials, ...options } = setup.options
  const shown = JSON.stringify({ ...options, auth: auth !== undefined, will: will !== undefined, credentials: credentials !== undefined })
  return `${shown}\n  ${program.text.join('\n  ')}\n${run.log.map((line) => `    ${line}`).join('\n')}`
}

// Undefined where there is no such client: its options are refused.
async function play(bytes: Uint8Array, cut: boolean, defect: Defect | undefined): Promise<ClientRun | undefined> {
  const tape = new Tape(bytes)
  let run: ClientRun
  try {
    run = new ClientRun(readSetup(tape), cut, defect)
  } catch (error) {
    if (MqttError.is(error)) return undefined
    throw new OracleError('api-throw', shownError(error), error)
  }
  try {
    await new Program(run, tape).play()
    await run.finish()
    return run
  } catch (error) {
    throw error instanceof OracleError ? error : new OracleError('harness', shownError(error), error)
  }
}

function checkSame(whole: ClientRun, cut: ClientRun): void {
  const length = Math.min(whole.common, cut.common, Math.max(whole.log.length, cut.log.length))
  for (let index = 0; index < length; index++) {
    const [first, second] = [whole.log[index], cut.log[index]]
    check(first === second, 'client-chunks', () => `entry ${index}: whole '${first ?? ''}', in pieces '${second ?? ''}'`)
  }
}
