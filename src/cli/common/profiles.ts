/**
 * Profiles: options of a connection under a name, in a file of the person.
 *
 * A profile works as the environment does: what it holds becomes a `MQWIRE_` variable, unless there
 * is one already.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { misuse } from './ending.js'

/** Options by their long names, as text. */
export type Profile = Readonly<Record<string, string>>

/** The content of the file. */
export interface Profiles {
  /** The profile that is used where none is named. */
  readonly use?: string | undefined
  readonly profiles: Readonly<Record<string, Profile>>
}

function fileName(): string {
  const { XDG_CONFIG_HOME, APPDATA } = process.env
  const base = XDG_CONFIG_HOME || APPDATA || path.join(homedir(), '.config')
  return path.join(base, 'mqwire', 'profiles.json')
}

/** Reads the file; without one there are no profiles. @throws Ending for a file of another kind */
export function readProfiles(): Profiles {
  const file = fileName()
  if (!existsSync(file)) return { profiles: {} }
  const text = readFileSync(file, 'utf8')
  try {
    const { use, profiles } = JSON.parse(text) as Profiles
    const isProfile = (each: unknown): boolean =>
      isTable(each) && Object.values(each).every((value) => typeof value === 'string')
    if (isTable(profiles) && Object.values(profiles).every(isProfile)) return { use, profiles }
  } catch {
    // As a file with something else in it.
  }
  throw misuse(`${file} has no profiles: mend or remove it`)
}

function isTable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Writes the file, which only its owner may read. It is replaced in one step. */
export function writeProfiles(profiles: Profiles): void {
  const file = fileName()
  mkdirSync(path.dirname(file), { recursive: true })
  const text = `${JSON.stringify(profiles, undefined, 2)}\n`
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** The profile of this name. @throws Ending that names those that there are */
export function profileOf(name: string, { profiles }: Profiles): Profile {
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (found !== undefined) return found
  const names = Object.keys(profiles)
  const others =
    names.length === 0 ? 'add it with mqwire profile add' : `there are: ${names.join(', ')}`
  throw misuse(`there is no profile "${name}"; ${others}`)
}

/** The name of the variable of an option. */
export function variableOf(option: string): string {
  return `MQWIRE_${option.toUpperCase().replaceAll('-', '_')}`
}

/** Other ways to give a password: none of them mixes with that of a profile. */
const passwords = ['password', 'password-file', 'ask-password']

/**
 * Puts the profile that the command line asks for, or the one in use, into the environment. The one
 * in use is not for another broker: where a URL is given, it is left out.
 */
export function applyProfile(args: readonly string[], env: NodeJS.ProcessEnv): void {
  const named = givenBy('profile', args) ?? env[variableOf('profile')]
  if (named === '') return
  const isGiven = (option: string): boolean =>
    Boolean(givenBy(option, args) ?? env[variableOf(option)])
  const isElsewhere =
    isGiven('url') || args.some((each) => each.startsWith('-u') || /^\w+:\/\//.test(each))
  if (named === undefined && isElsewhere) return
  const all = readProfiles()
  const name = named ?? all.use
  if (name === undefined) return
  const hasPassword = passwords.some(isGiven)
  for (const [option, value] of Object.entries(profileOf(name, all)))
    if (!(hasPassword && passwords.includes(option))) env[variableOf(option)] ||= value
}

/** What the command line gives an option; empty for a switch. */
function givenBy(option: string, args: readonly string[]): string | undefined {
  const end = args.indexOf('--')
  const options = end < 0 ? args : args.slice(0, end)
  const flag = `--${option}`
  const at = options.findIndex((each) => each === flag || each.startsWith(`${flag}=`))
  const found = options[at]
  return found === flag ? (options[at + 1] ?? '') : found?.slice(flag.length + 1)
}
