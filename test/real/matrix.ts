/**
 * The matrix feature × broker, as Markdown: made from the cells that the tests of the features left in a vitest report, and from nothing else.
 *
 * Pure: it may assume that a report is what vitest's JSON reporter writes. A cell of several transports tells where they differ; what was not run
 * is said to be not run.
 */

/** The brokers, in the order of the columns. */
export const brokerNames = ['aedes', 'mosquitto', 'mochi', 'HiveMQ CE'] as const
export type BrokerName = (typeof brokerNames)[number]

/** What one test shows of one feature. */
export interface Cell {
  readonly broker: BrokerName
  readonly version: string
  readonly transport: string
  readonly feature: string
  /** Of the feature: ids, a colon, and what is shown. */
  readonly title: string
  /** It works; the broker does otherwise than the standard says; the broker does not offer it. */
  readonly verdict: 'works' | 'deviates' | 'absent'
  /** Of a deviation or absence. */
  readonly reason?: string
}

/** A cell with what became of its test. */
export interface Result extends Cell {
  readonly passed: boolean
}

/** Of a vitest JSON report what is read here. */
export interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string
      readonly meta?: { readonly interop?: Cell }
    }[]
  }[]
}

/** The cells of a report. Tests that were not run have none. */
export function resultsOf(report: Report): Result[] {
  const tests = report.testResults.flatMap((file) => file.assertionResults)
  return tests.flatMap(({ status, meta }) =>
    meta?.interop === undefined ? [] : [{ ...meta.interop, passed: status === 'passed' }],
  )
}

/** Footnotes, numbered in the order in which they are asked for. */
class Notes {
  readonly #texts: string[] = []

  mark(text: string): string {
    if (!this.#texts.includes(text)) this.#texts.push(text)
    return `[${this.#texts.indexOf(text) + 1}]`
  }

  get lines(): string[] {
    return this.#texts.map((text, index) => `${index + 1}. ${text}`)
  }
}

const words: Readonly<Record<Cell['verdict'], string>> = {
  works: 'works',
  deviates: 'deviates',
  absent: 'not offered',
}

/** What one broker shows of one feature, over all transports that it was run on. */
function cell(results: readonly Result[], notes: Notes): string {
  if (results.length === 0) return 'not run'
  const parts = new Map<string, string[]>()
  for (const { verdict, reason, transport, passed } of results) {
    const text = passed
      ? `${words[verdict]}${reason === undefined ? '' : ` ${notes.mark(reason)}`}`
      : '**fails**'
    parts.set(text, [...(parts.get(text) ?? []), transport])
  }
  const [only] = [...parts.keys()]
  if (parts.size === 1 && only !== undefined) return only
  return [...parts]
    .map(([text, transports]) => `${text} (${transports.sort().join(', ')})`)
    .join('; ')
}

/** A title without the statements that it begins with. */
function shown(title: string): string {
  return title.replace(/^(?:MQTT-[\d.-]+[ ,]*)+: /, '')
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** The matrix: a row for each feature, in the order given, a column for each broker. */
export function matrix(
  features: readonly { readonly name: string; readonly title: string }[],
  results: readonly Result[],
): string {
  const notes = new Notes()
  const rows = features.map(({ name, title }) => {
    const cells = brokerNames.map((broker) =>
      cell(
        results.filter((each) => each.feature === name && each.broker === broker),
        notes,
      ),
    )
    return `| ${[`**${name}**: ${shown(title)}`, ...cells].map(escaped).join(' | ')} |`
  })
  const versions = brokerNames.map(
    (broker) =>
      `${broker} ${results.find((each) => each.broker === broker)?.version ?? '(not run)'}`,
  )
  return [
    '# Features × brokers',
    '',
    'Written by `npm run lab -- brokers write` from the results of the tests in this folder; not to be edited by hand.',
    '',
    `Brokers: ${versions.join(', ')}.`,
    '',
    '*works*: the test of the feature passes. *deviates*: the broker does otherwise, and a test shows what, so that a mended broker is noticed. *not offered*: the',
    'broker need not offer it and does not, which a test shows too. Where transports differ, they are named.',
    '',
    `| feature | ${brokerNames.join(' | ')} |`,
    `| --- |${brokerNames.map(() => ' --- |').join('')}`,
    ...rows,
    '',
    '## Notes',
    '',
    ...notes.lines,
    '',
  ].join('\n')
}

/** The names of the features in a matrix, in order. */
export function featuresIn(markdown: string): string[] {
  return [...markdown.matchAll(/^\| \*\*(.+?)\*\*: /gm)].map(([, name = '']) =>
    name.replaceAll('\\|', '|'),
  )
}
