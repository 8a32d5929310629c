/**
 * The process of one cell: one program, with one package, on one broker. Its parent says which, owns broker and link, and is told the figures.
 *
 * It ends by itself; its parent kills it when it does not.
 */
import { programs } from './programs.js'
import { type Assignment, type Order, runProgram, World } from './world.js'

export type ToParent =
  | { readonly order: Order; readonly argument: unknown; readonly number: number }
  | { readonly figures: unknown }
export type ToCell =
  | { readonly assignment: Assignment }
  | { readonly done: number; readonly result?: unknown; readonly error?: string }

const pending = new Map<
  number,
  { resolve: (value: unknown) => void; reject: (error: Error) => void }
>()
let orders = 0

function tell(message: ToParent): void {
  process.send?.(message)
}

function order(what: Order, argument?: unknown): Promise<unknown> {
  orders += 1
  const number = orders
  tell({ order: what, argument, number })
  return new Promise((resolve, reject) => pending.set(number, { resolve, reject }))
}

async function work(assignment: Assignment): Promise<void> {
  const program = programs.find(({ name }) => name === assignment.program)
  if (program === undefined) throw new Error(`no program ${assignment.program}`)
  const figures = await runProgram(program, new World(assignment, order))
  process.send?.({ figures } satisfies ToParent, () => process.exit(0))
}

process.on('message', (message: ToCell) => {
  if ('assignment' in message) return void work(message.assignment)
  const waiting = pending.get(message.done)
  pending.delete(message.done)
  if (message.error === undefined) waiting?.resolve(message.result)
  else waiting?.reject(new Error(message.error))
})
