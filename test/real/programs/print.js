/** What the programs say: one JSON object per line on standard output. */
export function print(report) {
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
