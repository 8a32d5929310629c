/**
 * The pages of the documentation site: which files of the checkout they are, under which names, their text with links that fit those names, and the
 * settings of the site with its navigation, and which blocks of code run in the page.
 *
 * Pure: text in, text out. Links in the sources are relative to files of the package, so that they work where there is no site.
 */
import path from 'node:path'
import { kindOf } from './site/kinds.mjs'

/** Files whose page has another name than they have. */
const named = new Map([
  ['README.md', 'index'],
  ['SECURITY.md', 'security-policy'],
  ['docs/README.md', 'guides'],
  ['docs/reference.md', 'reference/index'],
  ['test/real/MATRIX.md', 'proofs/brokers'],
  ['test/lab/budgets/BUDGETS.md', 'proofs/budgets'],
  ['bench/RESULTS.md', 'proofs/bench'],
])

/** The page that a file becomes, without its ending; undefined when it becomes none. */
export function pageOf(file) {
  const known = named.get(file)
  if (known !== undefined) return known
  if (file.startsWith('docs/') && file.endsWith('.md'))
    return file.slice('docs/'.length, -'.md'.length)
  const [, program] = /^examples\/(?:small|testing)\/([\w.-]+)\.js$/.exec(file) ?? []
  return program === undefined ? undefined : `programs/${program.replaceAll('.', '-')}`
}

/** Where a file that is no page is copied to, as it is: pictures. */
export const assetOf = (file) =>
  /^(?:examples\/screenshots\/[\w-]+\.png|docs\/[\w-]+\.svg)$/.test(file)
    ? `screenshots/${path.posix.basename(file)}`
    : undefined

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
  if (page === undefined && asset === undefined)
    throw new Error(`${file} leads to ${address}, which the site has not`)
  const place = page === undefined ? `/${asset}` : `/${page.replace(/(^|\/)index$/, '$1')}`
  return anchor === undefined ? place : `${place}#${anchor}`
}

/** The tables of proofs: pages of the site, which the package does not ship. */
export const tables = [...named.keys()].filter(
  (file) => file.startsWith('test/') || file.startsWith('bench/'),
)

/** A code span that names one of these tables leads to it; on the index of the reference, one that names an entry of the package does. */
function linked(file, span) {
  const table = tables.find((each) => span === `\`${each}\``)
  if (table !== undefined) return `[${span}](/${pageOf(table)})`
  const [, , entry] = /^`(mqwire(?:\/([a-z/-]+))?)`$/.exec(span) ?? []
  return file === 'docs/reference.md' && span.startsWith('`mqwire')
    ? `[${span}](/reference/${entry ?? 'mqwire'})`
    : span
}

/** The text of a page for the site. */
export function textFor(file, text) {
  if (file.endsWith('.js')) return `# ${path.posix.basename(file)}\n\n\`\`\`js\n${text}\`\`\`\n`
  return text
    .split(new RegExp(code, 'gm'))
    .map((part, index) => (index % 2 === 1 ? linked(file, part) : rewritten(file, part)))
    .join('')
}

function rewritten(file, prose) {
  return prose
    .replace(/\]\(([^()\s]+)\)/g, (_, address) => `](${addressOn(file, address)})`)
    .replace(
      /\b(src|srcset|href)="([^"\s]+)"/g,
      (_, name, address) => `${name}="${addressOn(file, address)}"`,
    )
}

/** The page where programs are written. */
export const playground = `---
sidebar: false
aside: false
prev: false
next: false
---
# Playground

Any program over mqwire, in TypeScript or JavaScript. It runs in this page, on a broker in memory that every URL leads to: it can load nothing from
other sites and send them nothing.
Ctrl-Enter runs it as well. Share puts the program into the address.

<run-playground></run-playground>
`

/** Programs to begin with in the playground: the first of those of a file that run, or the first behind a heading. */
const begins = [
  ['The first program', 'README.md'],
  ['Typed topics', 'README.md', '## Typed topics'],
  ['Requests and answers', 'docs/sending.md', '## Requests'],
  ['A lost acknowledgement', 'docs/testing.md', '## A broker in memory'],
  ['A stream of answers', 'docs/typed.md', '## Operations'],
  ['Latest values', 'docs/typed.md', '## Latest values'],
  ['Many connections', 'docs/many.md'],
  ['The codec', 'docs/wire.md'],
  ['The life of a connection', 'examples/small/lifecycle.js'],
]

/** Those programs, given how a file is read. @throws Error when one is not there */
export const startsOf = (read) =>
  begins.map(([title, file, heading = '']) => {
    const text = textFor(file, read(file))
    const blocks = text
      .slice(Math.max(0, text.indexOf(heading)))
      .matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)
    const found = [...blocks].find(([, info, code]) => /ends|runs/.test(kindOf(info, code)))
    if (found === undefined || !text.includes(heading))
      throw new Error(`the playground begins with a program that is not there: ${file} ${heading}`)
    return { title, code: found[2] }
  })

/** Marks the blocks that a page can run, and those for Node alone. */
function programs(md) {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const block = fence(tokens, index, ...rest)
    const { info, content } = tokens[index]
    const kind = kindOf(info.trim(), content, tokens[index - 1]?.content.startsWith('<!-- given'))
    if (kind === undefined) return block
    return kind === 'node'
      ? `<div class="program-node">${block}<p class="program-label">Node only</p></div>`
      : `<run-program ${kind}>${block}</run-program>`
  }
}

// Programs of the pages may come from strangers. They and their workers load from the site alone, and send nothing to any other. A worker that is not
// from a blob would have no policy.
const policy = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  'worker-src blob:',
  "frame-src 'none'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const guides = [
  ['Connecting', 'connecting'],
  ['Proxies and clouds', 'cloud'],
  ['Receiving', 'receiving'],
  ['Sending', 'sending'],
  ['Retained messages and wills', 'retained'],
  ['Reconnecting and sessions', 'reconnecting'],
  ['Stores and queues', 'durability'],
  ['Many connections, many brokers', 'many'],
  ['Shutting down', 'shutdown'],
  ['Typed topics', 'typed'],
  ['Browsers and React', 'browser'],
  ['Security', 'security'],
  ['Testing your program', 'testing'],
  ['Tracing and metrics', 'tracing'],
  ['Performance', 'performance'],
  ['The command line', 'cli'],
  ['The codec', 'wire'],
  ['From MQTT.js', 'from-mqttjs'],
  ['Examples', 'examples'],
  ['When it does not work', 'troubleshooting'],
]
const lists = [
  ['Options', 'options'],
  ['Events, counters, logs', 'events'],
  ['Errors', 'errors'],
  ['Platforms', 'platforms'],
]
const proofs = [
  ['Comparison', 'comparison'],
  ['The tests of MQTT.js', 'compat'],
  ['Proofs', 'proofs'],
  ['Broker matrix', 'proofs/brokers'],
  ['Budgets', 'proofs/budgets'],
  ['Bench results', 'proofs/bench'],
  ['Security policy', 'security-policy'],
]
const items = (list) =>
  list.map(([text, page]) => ({ text, link: page.startsWith('/') ? page : `/${page}` }))

/** The settings; `references` are the pages of the API reference. */
export function settings({ base, outDir, references }) {
  // `reference/mqwire` is the main entry, `reference/wire` is mqwire/wire.
  const entries = references.map((page) => {
    const [, entry = ''] = /^\w+\/(.*)$/.exec(page) ?? []
    return [entry === 'mqwire' ? entry : `mqwire/${entry}`, page]
  })
  const reference = [...lists, ['API reference', '/reference/'], ...entries]
  return {
    title: 'mqwire',
    description: 'An MQTT 5.0 and 3.1.1 client for TypeScript: browsers, workers and Node',
    lang: 'en',
    base,
    outDir,
    cleanUrls: false,
    head: [
      ['meta', { 'http-equiv': 'Content-Security-Policy', content: policy }],
      ['link', { rel: 'icon', href: 'data:,' }],
    ],
    vue: {
      template: { compilerOptions: { isCustomElement: (name) => name.startsWith('run-') } },
    },
    markdown: {
      config: programs,
      anchor: { slugify: slugOf },
      toc: { slugify: slugOf },
      theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    },
    themeConfig: {
      // Guides first, tables of evidence last. It runs in the page, by itself.
      search: {
        provider: 'local',
        options: {
          miniSearch: {
            searchOptions: {
              boostDocument: (page) =>
                /\/proofs\//.test(page) ? 0.2 : /\/(?:reference|programs)\//.test(page) ? 0.6 : 1,
            },
          },
        },
      },
      outline: [2, 3],
      nav: [
        { text: 'Guides', link: '/guides' },
        { text: 'Playground', link: '/playground' },
        { text: 'Reference', link: '/reference/' },
        { text: 'From MQTT.js', link: '/from-mqttjs' },
        { text: 'Comparison', link: '/comparison' },
      ],
      sidebar: [
        {
          text: 'Start',
          items: [
            { text: 'mqwire', link: '/' },
            { text: 'All pages', link: '/guides' },
          ],
        },
        { text: 'Guides', items: items(guides) },
        { text: 'Reference', collapsed: true, items: items(reference) },
        { text: 'Evidence', collapsed: true, items: items(proofs) },
      ],
    },
  }
}
