/** Settings of the documentation site: its navigation, its search, and anchors as the pages have them elsewhere. */
import { slugOf } from './pages.mjs'

const guides = [
  ['Connecting', 'connecting'],
  ['Proxies and clouds', 'cloud'],
  ['Receiving', 'receiving'],
  ['Sending', 'sending'],
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
  ['The codec', 'wire'],
  ['From MQTT.js', 'from-mqttjs'],
  ['Examples', 'examples'],
]
const tables = [
  ['Options', 'options'],
  ['Events, counters, logs', 'events'],
  ['Errors', 'errors'],
  ['Platforms', 'platforms'],
]
const proofs = [
  ['Comparison', 'comparison'],
  ['The tests of MQTT.js', 'compat'],
  ['Proofs', 'proofs'],
  ['Normative statements', 'proofs/statements'],
  ['Broker matrix', 'proofs/brokers'],
  ['Ordinary programs', 'proofs/programs'],
  ['Budgets', 'proofs/budgets'],
  ['Bench results', 'proofs/bench'],
  ['Security policy', 'security-policy'],
]
const items = (list) => list.map(([text, page]) => ({ text, link: page.startsWith('/') ? page : `/${page}` }))

/** The settings; `references` are the pages of the API reference. */
export function settings({ base, outDir, references }) {
  // `reference/mqwire` is the main entry, `reference/wire` is mqwire/wire.
  const entries = references.map((page) => {
    const [, entry = ''] = /^\w+\/(.*)$/.exec(page) ?? []
    return [entry === 'mqwire' ? entry : `mqwire/${entry}`, page]
  })
  const reference = [...tables, ['API reference', '/reference/'], ...entries]
  return {
    title: 'mqwire',
    description: 'An MQTT 5.0 and 3.1.1 client for TypeScript: browsers, workers and Node',
    lang: 'en',
    base,
    outDir,
    cleanUrls: false,
    head: [['link', { rel: 'icon', href: 'data:,' }]],
    markdown: {
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
              boostDocument: (page) => (/\/proofs\//.test(page) ? 0.2 : /\/(?:reference|programs)\//.test(page) ? 0.6 : 1),
            },
          },
        },
      },
      outline: [2, 3],
      nav: [
        { text: 'Guides', link: '/guides' },
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
