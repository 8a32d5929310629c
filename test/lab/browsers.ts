/** The built package and the virtual world in headless Chromium (`test/browser`). */
import { type Lab, type Result, together } from './lab.js'

export const about =
  'all of test/browser; `inside`: more seeds of the world in a page and a worker; `hidden`: a hidden tab for eight minutes of real time; `screenshots` writes the pictures anew'
export const minutes = 3

const suites: Readonly<Record<string, (lab: Lab) => Promise<Result>>> = {
  inside: (lab) => lab.vitest(['test/browser/world.test.ts'], { env: { MQWIRE_LONG: '1' } }),
  hidden: (lab) => lab.vitest([], { args: ['--config', 'test/browser/vitest.config.ts'] }),
  screenshots: (lab) =>
    lab.vitest([], { args: ['--config', 'test/browser/vitest.screenshots.config.ts'] }),
}

export async function run(lab: Lab): Promise<Result> {
  if (lab.words.length === 0) return lab.vitest(['test/browser/'])
  const results: Result[] = []
  for (const word of lab.words) {
    const suite = suites[word]
    if (suite === undefined)
      throw new Error(
        `there is no ${word} in browsers; there are: ${Object.keys(suites).join(', ')}`,
      )
    results.push(await suite(lab))
  }
  return together(...results)
}
