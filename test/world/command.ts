/**
 * Runs the command of the world in a process of its own.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const command = fileURLToPath(new URL('../../.ci/world.mjs', import.meta.url))

/** Gives its exit code and what it printed. */
export function runCommand(...args: string[]): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => (text += part))
    child.on('close', (code) => resolve({ code, text }))
  })
}
