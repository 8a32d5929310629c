/** The one program that every runtime runs and every bundler bundles: it imports `connect` as a user would, talks to a broker, and leaves. */

/**
 * `round(url)`, which promises what it came to. What it asks itself at the end loads the module for requests, which bundlers put into a file of its own.
 */
export const round = `
async function round(url) {
  const client = await connect(url, { reconnect: false })
  const topic = 'round/' + client.clientId
  const subscription = await client.subscribe(topic, { qos: 2 })
  for (const qos of [0, 1, 2]) await client.publish(topic, 'sent at ' + qos, { qos })
  const received = []
  for await (const message of subscription) {
    received.push(message.text() + ', came at ' + message.qos)
    if (received.length === 3) break
  }
  await client.respond(topic + '/question', (message) => message.text() + '!')
  const answer = await client.request(topic + '/question', 'answered', { timeout: 5000 })
  await client.disconnect()
  return [...received.sort(), answer.text(), client.state].join('; ')
}
`

const fromArguments = `
async function main() {
  for (const url of process.argv.slice(2)) console.log(await round(url))
}
main()
`

export const wellDone =
  'sent at 0, came at 0; sent at 1, came at 1; sent at 2, came at 2; answered!; closed'

/** Goes round with each URL of the command line. For Node, Deno and Bun: it ends when nothing is left that would keep it alive. */
export const programs: Readonly<Record<'round.mjs' | 'round.cjs', string>> = {
  'round.mjs': `import { connect } from 'mqwire'\n${round}${fromArguments}`,
  'round.cjs': `const { connect } = require('mqwire')\n${round}${fromArguments}`,
}

/** For a page: goes round with the URL behind the `?`, and promises the outcome as a global. */
export const pageScript = `import { connect } from 'mqwire'
${round}
globalThis.outcome = round(decodeURIComponent(location.search.slice(1)))
`

/** A page that runs a script, with what stands before it in its head. */
export function pageWith(script: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>round</title>
    <link rel="icon" href="data:," />
    ${head}
  </head>
  <body>
    <script type="module" src="${script}"></script>
  </body>
</html>
`
}
