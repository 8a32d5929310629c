/**
 * Which files of the checkout are pages of the documentation site, under which names, and their text with links that fit those names.
 *
 * Pure: text in, text out. Links in the sources are relative to files of the package, so that they work where there is no site.
 */
import path from 'node:path'

/** Files whose page has another name than they have. */
const named = new Map([
  ['README.md', 'index'],
  ['SECURITY.md', 'security-policy'],
  ['docs/README.md', 'guides'],
  ['docs/reference/README.md', 'reference/index'],
  ['test/conformance/STATEMENTS.md', 'proofs/statements'],
  ['test/interop/MATRIX.md', 'proofs/brokers'],
  ['test/programs/MATRIX.md', 'proofs/programs'],
  ['test/budgets/BUDGETS.md', 'proofs/budgets'],
  ['bench/RESULTS.md', 'proofs/bench'],
])

/** The page that a file becomes, without its ending; undefined when it becomes none. */
export function pageOf(file) {
  const known = named.get(file)
  if (known !== undefined) return known
  if (file.startsWith('docs/') && file.endsWith('.md')) return file.slice('docs/'.length, -'.md'.length)
  const [, program] = /^examples\/(?:small|testing)\/([\w.-]+)\.js$/.exec(file) ?? []
  return program === undefined ? undefined : `programs/${program.replaceAll('.', '-')}`
}

/** Where a file that is no page is copied to, as it is: pictures. */
export const assetOf = (file) => (/^examples\/screenshots\/[\w-]+\.png$/.test(file) ? `screenshots/${path.posix.basename(file)}` : undefined)

/** The anchor of a heading, as the usual hosts of repositories make it. */
export const slugOf = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

// Fenced blocks, and code in a line: what stands in them is no link.
const code = /(^```[\s\S]*?^```$|`[^`\n]*`)/m

/** What an address of a file becomes on the site. @throws Error when it leads to nothing that the site has */
function addressOn(file, address) {
  if (/^(?:[a-z][a-z\d+.-]*:|#)/i.test(address)) return address
  const [target = '', anchor] = address.split('#')
  const found = path.posix.join(path.posix.dirname(file), target)
  const page = pageOf(found)
  const asset = assetOf(found)
  if (page === undefined && asset === undefined) throw new Error(`${file} leads to ${address}, which the site has not`)
  const place = page === undefined ? `/${asset}` : `/${page.replace(/(^|\/)index$/, '$1')}`
  return anchor === undefined ? place : `${place}#${anchor}`
}

/** The tables of proofs: pages of the site, which the package does not ship. */
export const tables = [...named.keys()].filter((file) => file.startsWith('test/') || file.startsWith('bench/'))

/** A code span that names one of these tables leads to it. */
function linked(span) {
  const file = tables.find((each) => span === `\`${each}\``)
  return file === undefined ? span : `[${span}](/${pageOf(file)})`
}

/** The text of a page for the site. */
export function textFor(file, text) {
  if (file.endsWith('.js')) return `# ${path.posix.basename(file)}\n\n\`\`\`js\n${text}\`\`\`\n`
  return text
    .split(new RegExp(code, 'gm'))
    .map((part, index) => (index % 2 === 1 ? linked(part) : rewritten(file, part)))
    .join('')
}

function rewritten(file, prose) {
  return prose
    .replace(/\]\(([^()\s]+)\)/g, (_, address) => `](${addressOn(file, address)})`)
    .replace(/\b(src|srcset|href)="([^"\s]+)"/g, (_, name, address) => `${name}="${addressOn(file, address)}"`)
}
