/** Real time that passes in a test: for what no event tells. */

/** Real milliseconds. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

/** The next turn of the event loop: what was under way in this process has gone on. */
export function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
