/** The command as it is packed, run as a shell would. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import path from 'node:path'
import { packed, requireDist } from '../package/fixture.js'

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<Ended>
  /** Fulfils when this stands on standard error or output. */
  said(text: string): Promise<void>
}

export interface Surroundings {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

await requireDist()
const { folder } = await packed()
export const bin = path.join(folder, 'node_modules', '.bin', 'mqwire')

/** Starts it. Without `input`, standard input stays open. */
export function start(args: readonly string[], { input, env }: Surroundings = {}): Started {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('MQWIRE_')),
  )
  // Profiles of the person who runs the tests are none of theirs.
  const child = spawn(bin, args, {
    env: { ...clean, NO_COLOR: '1', XDG_CONFIG_HOME: '/nowhere', ...env },
  })
  const [out, err]: [string[], string[]] = [[], []]
  const hear = (text: string): boolean => out.join('').includes(text) || err.join('').includes(text)
  const waiting = new Set<() => void>()
  for (const [stream, texts] of [
    [child.stdout, out],
    [child.stderr, err],
  ] as const)
    stream.setEncoding('utf8').on('data', (text: string) => {
      texts.push(text)
      for (const look of waiting) look()
    })
  if (input !== undefined) child.stdin.end(input)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, out: out.join(''), err: err.join('') }))
  })
  const said = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!hear(text)) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
      void ended.then((end) =>
        reject(new Error(`it ended without '${text}': ${JSON.stringify(end)}`)),
      )
    })
  return { child, ended, said }
}

/** Runs it to its end, with nothing on standard input. */
export function mqwire(args: readonly string[], around: Surroundings = {}): Promise<Ended> {
  return start(args, { input: '', ...around }).ended
}
