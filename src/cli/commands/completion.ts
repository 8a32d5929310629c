/**
 * `mqwire completion`: completes commands, options and their values in bash, zsh and fish.
 *
 * The script of a shell runs `mqwire completion candidates -- WORDS` for each completion, so it need
 * not change with the options.
 */
import { Argument, Command, type Option } from 'commander'
import { write } from '../common/terminal.js'

const scripts = {
  bash: `_mqwire() {
  local IFS=$'\\n' found
  found=$(mqwire completion candidates -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _mqwire mqwire
`,
  zsh: `#compdef mqwire
_mqwire() {
  local -a found
  found=("\${(@f)$(mqwire completion candidates -- "\${(@)words[2,CURRENT]}" 2>/dev/null | sed -e 's/:/\\\\:/g' -e $'s/\\t/:/')}")
  [[ -n "$found" ]] && _describe mqwire found || _files
}
compdef _mqwire mqwire
`,
  fish: `complete -c mqwire -a '(mqwire completion candidates -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
} as const

type Shell = keyof typeof scripts

const examples = `
Examples:
  mqwire completion bash >> ~/.bashrc
  mqwire completion zsh > "\${fpath[1]}/_mqwire"
  mqwire completion fish > ~/.config/fish/completions/mqwire.fish
`

/** Defines the command; it completes those of the program. */
export function completionCommand(program: Command): Command {
  const shell = new Argument('<shell>', 'shell').choices(Object.keys(scripts))
  return new Command('completion')
    .description('print the completions for a shell')
    .addArgument(shell)
    .addHelpText('after', examples)
    .action((name: Shell) => write(scripts[name]))
    .addCommand(
      new Command('candidates')
        .argument('[words...]', 'words behind mqwire, the last one may be empty')
        .action((words: readonly string[]) => write(candidates(program, words).join(''))),
      { hidden: true },
    )
}

/** What may stand in place of the last word: a line each, with a tab before what it means. */
export function candidates(program: Command, words: readonly string[]): string[] {
  const before = words.slice(0, -1)
  const last = words.at(-1) ?? ''
  let command = program
  for (const word of before)
    command = command.commands.find((each) => each.name() === word) ?? command
  const previous = optionOf(command, before.at(-1))
  if (previous?.required) return (previous.argChoices ?? []).map((choice) => line(choice, ''))
  if (last.startsWith('-'))
    return command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long, short, description }) => line(long ?? short ?? '', description))
  const [argument] = command.registeredArguments
  return [
    ...command.commands
      .filter((each) => each.name() !== 'candidates')
      .map((each) => line(each.name(), each.description())),
    ...(argument?.argChoices ?? []).map((choice) => line(choice, '')),
  ]
}

function optionOf(command: Command, word: string | undefined): Option | undefined {
  return command.options.find(
    ({ long, short }) => word !== undefined && [long, short].includes(word),
  )
}

function line(word: string, about: string): string {
  return `${word}\t${about}\n`
}
