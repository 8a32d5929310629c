/** Which normative statements of MQTT 5.0 tests show: those that the title of a test cites, as `[MQTT-3.1.2-1]`. */
import list from './statements.json' with { type: 'json' }

/** A test that passed: its file below `test`, and its title with those of its suites. */
export interface Passed {
  readonly file: string
  readonly title: string
}

/** A statement of `statements.json`; `applies` is the side that it binds. */
interface Statement {
  readonly id: string
  readonly applies: 'client' | 'server' | 'both'
}

const statements = list as readonly Statement[]

/** How many statements there are. */
export const count = statements.length

/** The statements that a title cites. */
export function cited(title: string): string[] {
  return title.replace(/\[3\.1\.1:[^\]]*\]/g, '').match(/MQTT-\d+\.\d+\.\d+-\d+/g) ?? []
}

/** Tests that stand on the server's side of the wire. */
const isServer = (file: string): boolean => file.startsWith('broker/')

/** Statements that nothing shows, and ids that no statement has. What binds a client must be shown by a client, what binds a server by the broker in memory. */
export function objections(tests: readonly Passed[]): string[] {
  const byClient = new Set(
    tests.filter(({ file }) => !isServer(file)).flatMap(({ title }) => cited(title)),
  )
  const byServer = new Set(
    tests.filter(({ file }) => isServer(file)).flatMap(({ title }) => cited(title)),
  )
  const known = new Set(statements.map(({ id }) => id))
  return [
    ...statements
      .filter(({ id, applies }) => applies !== 'server' && !byClient.has(id))
      .map(({ id }) => `no test of the client cites ${id}`),
    ...statements
      .filter(({ id, applies }) => applies !== 'client' && !byServer.has(id))
      .map(({ id }) => `no test of the broker in memory cites ${id}`),
    ...[...byClient, ...byServer]
      .filter((id) => !known.has(id))
      .map((id) => `a test cites ${id}, which is no statement`),
  ]
}
