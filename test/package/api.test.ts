/** What each entry declares, as `npm run api` wrote it into `test/package/api`: a change of these files is a change of the public API, and has to be meant. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  type ExtractorMessage,
} from '@microsoft/api-extractor'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { requireDist, root } from './fixture.js'

const declarations = new Map(
  Object.entries(packageJson.exports).flatMap(([name, entry]): [string, string][] =>
    typeof entry === 'string'
      ? []
      : [
          [
            name === '.' ? 'mqwire' : name.slice(2).replaceAll('/', '-'),
            path.join(root, entry.types),
          ],
        ],
  ),
)
const made = mkdtempSync(path.join(tmpdir(), 'mqwire-api-'))

/** Names that declarations use and their entry does not export. */
const named = new Set<string>()
/** Of these the ones that no program needs to name: what is private or inside, and steps of a type. */
const inner = [
  'ClientAccess',
  'Client_base',
  'Faults',
  'Listeners',
  'Platform',
  'Printed',
  'PropertyNotes',
  'Reread',
  'SessionSubscription',
  'Slots',
  'TopicTable',
  'asyncDisposeSymbol',
]

const silent = { default: { logLevel: ExtractorLogLevel.None } }

function configOf(report: string, file: string): ExtractorConfig {
  const { compilerOptions } = JSON.parse(
    readFileSync(path.join(root, 'tsconfig.json'), 'utf8'),
  ) as { compilerOptions: object }
  return ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: file,
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          compilerOptions: { ...compilerOptions, skipLibCheck: true, paths: {} },
          files: [...declarations.values()],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: `${report}.api.md`,
        reportFolder: made,
        reportTempFolder: path.join(made, 'new'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: path.join(root, 'package.json'),
  })
}

beforeAll(async () => {
  await requireDist()
  const configs = [...declarations].map(([report, file]) => configOf(report, file))
  const compilerState = CompilerState.create(configs[0] as ExtractorConfig, {
    additionalEntryPoints: [...declarations.values()],
  })
  for (const config of configs) {
    const messageCallback = (message: ExtractorMessage): void => {
      if (message.messageId === 'ae-forgotten-export')
        named.add(/"(\w+)"/.exec(message.text)?.[1] ?? message.text)
      message.handled = true
    }
    Extractor.invoke(config, { compilerState, messageCallback })
  }
}, 60_000)
afterAll(() => rmSync(made, { recursive: true, force: true }))

/** What an entry declares. What the extractor says of docstrings is left out, and one line needs no space around it. */
function reportOf(report: string): string {
  return readFileSync(path.join(made, 'new', `${report}.api.md`), 'utf8')
    .replace(/^##[^`]*/, '')
    .replace(/^ *\/\/ .*\n/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^(export .*;)\n\n(?=export .*;$)/gm, '$1\n')
}

describe('the public API', () => {
  it.each([...declarations.keys()])('of %s is the one in test/package/api', async (report) => {
    await expect(
      reportOf(report),
      'The public API changed. If that is meant: npm run api',
    ).toMatchFileSnapshot(path.join(root, 'test', 'package', 'api', `${report}.api.md`))
  })

  it('has an entry that exports it, for each name that a program needs', () => {
    const exported = new Set(
      [...declarations.keys()]
        .flatMap((report) => reportOf(report).split('\n'))
        .map((line) =>
          /^export (?:abstract )?(?:class|const|function|interface|type) (\w+)/.exec(line),
        )
        .flatMap((found) => found?.[1] ?? []),
    )
    expect(exported.size).toBeGreaterThan(200)
    expect([...named].filter((name) => !exported.has(name)).sort()).toEqual(inner)
  })

  it('has a report for each entry, and for nothing else', () => {
    const reports = readdirSync(path.join(root, 'test', 'package', 'api'))
    expect(reports.sort()).toEqual(
      [...declarations.keys()].map((report) => `${report}.api.md`).sort(),
    )
  })
})
