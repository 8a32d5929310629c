/**
 * What stands behind options, as values: durations, numbers, files, pairs.
 *
 * Each is given to commander, which names the option in the error.
 */
import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import { validateTopicFilter, validateTopicName } from 'mqwire/wire'

const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** The longest time that a timer of the platform can wait. */
const mostMilliseconds = 2 ** 31 - 1

/** Milliseconds of `500ms`, `10s`, `2m`, `1h`, `1d`; a plain number counts seconds. */
export function duration(text: string): number {
  const [, number = '', unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? []
  const milliseconds = Number(number) * (units[unit] as number)
  if (number === '' || milliseconds > mostMilliseconds)
    throw new InvalidArgumentError('Write 500ms, 10s, 2m or 1h; at most 24d.')
  return milliseconds
}

/** As {@link duration}; less than zero with a minus sign. */
export function signedDuration(text: string): number {
  return text.startsWith('-') ? -duration(text.slice(1)) : duration(text)
}

/** A reader of whole numbers in a range. */
export function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`)
    return value
  }
}

/** A number above zero. */
export function positive(text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Number.POSITIVE_INFINITY))
    throw new InvalidArgumentError('Write a number above 0.')
  return value
}

/** A quality of service. */
export function qos(text: string): 0 | 1 | 2 {
  return whole(0, 2)(text) as 0 | 1 | 2
}

/** Collects `name=value`. */
export function pair(
  text: string,
  before: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write NAME=VALUE.')
  return [...before, [text.slice(0, at), text.slice(at + 1)]]
}

/** Collects headers, `Name: value`. */
export function header(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = text.indexOf(':')
  if (at < 1) throw new InvalidArgumentError("Write 'NAME: VALUE'.")
  return { ...before, [text.slice(0, at).trim()]: text.slice(at + 1).trim() }
}

/** A topic filter; `$share/…` as well. */
export function filter(text: string): string {
  return checked(text, validateTopicFilter)
}

/** Collects topic filters. */
export function filters(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, filter(text)]
}

/** A topic name. */
export function topic(text: string): string {
  return checked(text, validateTopicName)
}

function checked(text: string, problemOf: (text: string) => string | undefined): string {
  const problem = problemOf(text)
  if (problem !== undefined) throw new InvalidArgumentError(`It ${problem}.`)
  return text
}

/** The bytes of a file. */
export function file(name: string): Uint8Array {
  try {
    return readFileSync(name)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}
