/**
 * A page made of the installed package by a bundler, looked at and opened.
 */
import path from 'node:path'
import { nodeBelow } from './browser-code.js'
import { project } from './fixture.js'
import type { OpenPage, PageOutcome } from './page.js'
import { pageScript, pageWith } from './round.js'

/** Bundles `page.js` of a folder into its `site/`, which has a page that loads `page.js`, and gives the warnings. */
export type Bundle = (folder: string) => Promise<readonly string[]>

export interface Bundled extends PageOutcome {
  readonly warnings: readonly string[]
  /** What the code has of Node. */
  readonly node: readonly string[]
}

/** Bundles the program of all runtimes with a bundler as it comes, and opens the page with the URL of a broker. */
export async function bundled(bundle: Bundle, openPage: OpenPage, url: string): Promise<Bundled> {
  const page = pageWith('/page.js')
  const folder = await project({
    'page.js': pageScript,
    'index.html': page,
    'site/index.html': page,
  })
  const warnings = await bundle(folder)
  const site = path.join(folder, 'site')
  return { warnings, node: await nodeBelow(site), ...(await openPage(site, url)) }
}

/** A bundle without a flaw, of which a page has run. */
export const flawless = (outcome: string): Bundled => ({
  warnings: [],
  node: [],
  outcome,
  console: [],
})
