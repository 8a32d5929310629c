/**
 * `mqwire profile`: keeps options of connections under names.
 */
import path from 'node:path'
import { Command } from 'commander'
import { withConnection } from '../common/connection.js'
import { misuse } from '../common/ending.js'
import { profileOf, readProfiles, variableOf, writeProfiles } from '../common/profiles.js'
import { say, write } from '../common/terminal.js'

const examples = `
A profile is used by --profile NAME or MQWIRE_PROFILE, and without both the one of \`profile use\`, unless a --url is given. What stands on the command line
or in the environment goes first; --profile '' uses none. Passwords stay outside: a profile names a --password-file.

Examples:
  mqwire profile add plant --url mqtts://broker.example --username me --password-file ~/.plant
  mqwire profile use plant
  mqwire sub 'line/#'
  mqwire sub --profile test 'line/#'
`

/** Defines the command. */
export function profileCommand(): Command {
  return new Command('profile')
    .description('keep options of connections under a name')
    .addCommand(addCommand())
    .addCommand(
      new Command('list').description('print the profiles; * is the one in use').action(list),
    )
    .addCommand(
      new Command('use')
        .description('use a profile where none is named')
        .argument('[name]', 'profile (default: none any more)')
        .action(use),
    )
    .addCommand(
      new Command('remove')
        .description('remove a profile')
        .argument('<name>', 'profile')
        .action(remove),
    )
    .addHelpText('after', examples)
}

/** Options that name files, which are kept with their whole paths. */
const files = ['ca', 'cert', 'key', 'password-file']
/** Options that are not for a file that lies around, or for one run only. */
const left = ['password', 'ask-password', 'profile']

function addCommand(): Command {
  const command = withConnection(
    new Command('add').description('add or replace a profile').argument('<name>', 'profile'),
  )
  const given: Record<string, string> = {}
  for (const option of command.options) {
    const name = option.name()
    // The environment is no part of a profile.
    delete option.envVar
    // Behind the listener of commander, which has checked the text.
    command.on(`option:${name}`, (text = 'true') => {
      if (left.includes(name)) throw misuse(`a profile has no --${name}: use --password-file`)
      if (name in given) throw misuse(`a profile has one --${name} only`)
      if (name === 'url' && URL.canParse(text) && new URL(text).password !== '')
        throw misuse('a profile holds no password: use --username and --password-file')
      given[name] = files.includes(name) ? path.resolve(text) : text
    })
  }
  return command.action((name: string) => {
    if (!/^[\w.-]+$/.test(name))
      throw misuse('the name of a profile has letters, digits, - . and _')
    if (Object.keys(given).length === 0) throw misuse('a profile needs at least --url')
    const all = readProfiles()
    writeProfiles({ ...all, profiles: { ...all.profiles, [name]: given } })
    say(`profile ${name}: ${Object.keys(given).map(variableOf).join(', ')}`)
  })
}

async function list(): Promise<void> {
  const all = readProfiles()
  for (const [name, { url = '', username }] of Object.entries(all.profiles))
    await write(
      `${all.use === name ? '*' : ' '} ${name}  ${url}${username === undefined ? '' : `  ${username}`}\n`,
    )
}

function use(name: string | undefined): void {
  const all = readProfiles()
  if (name !== undefined) profileOf(name, all)
  writeProfiles({ ...all, use: name })
}

function remove(name: string): void {
  const all = readProfiles()
  profileOf(name, all)
  const { [name]: _removed, ...profiles } = all.profiles
  writeProfiles({ use: all.use === name ? undefined : all.use, profiles })
}
