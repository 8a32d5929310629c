/**
 * A web server for one page of the examples, on this machine only. It has the files that it is told of and reads no others from the disk: whatever
 * else is asked for is not there.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'

/** What every page may: run and be styled by its own files, in no frame. Images, connections and forms are up to the page. */
export const strict =
  "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

const common = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
}

/** Ports that are tried, one after the other. */
const attempts = 20

/** Bundles a page's modules and styles for browsers, with esbuild's options. Gives their contents by file name extension: `.js`, `.css`. */
export async function bundled(options) {
  // Whoever opens no page does not wait for it.
  const { build } = await import('esbuild')
  const settings = {
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
  }
  const { outputFiles } = await build({ ...settings, outdir: options.absWorkingDir, ...options })
  return new Map(
    outputFiles.map((file) => [file.path.slice(file.path.lastIndexOf('.')), file.contents]),
  )
}

/** Runs at the first call only; what failed may be tried again. */
export function lazily(make) {
  let made
  return () => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    return made
  }
}

/** Listens on a port of this machine, or on the next one that is free. */
async function listen(server, port) {
  for (let attempt = 0; ; attempt += 1) {
    // The system chooses, when so many are taken.
    const wanted = port > 0 && attempt < attempts && port + attempt <= 65_535 ? port + attempt : 0
    server.listen(wanted, '127.0.0.1')
    try {
      await once(server, 'listening')
      return server.address().port
    } catch (error) {
      if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
      if (wanted === 0) throw error
    }
  }
}

async function answer({ method, url }, response, { files, policy }) {
  const [pathname, query = ''] = url.split('?')
  const headers = { ...common, 'content-security-policy': policy(new URLSearchParams(query)) }
  const end = (status, more, body) =>
    response.writeHead(status, { ...headers, ...more }).end(method === 'HEAD' ? undefined : body)
  const text = { 'content-type': 'text/plain; charset=utf-8' }
  if (method !== 'GET' && method !== 'HEAD')
    return end(405, { ...text, allow: 'GET, HEAD' }, 'GET and HEAD only\n')
  const file = files.get(pathname)
  if (file === undefined) return end(404, text, 'there is nothing here\n')
  const [type, read] = file
  try {
    const content = await read()
    return end(200, { 'content-type': type, 'content-length': content.length }, content)
  } catch (error) {
    console.error(`The page could not be made: ${error.message}`)
    return end(500, text, 'the page could not be made\n')
  }
}

/**
 * Starts the server. `files` maps the path of a request to content type and what reads the content; `policy` gives the Content Security Policy for the
 * query of the request. Port 0 is any that is free. Gives where it listens, and what stops it.
 */
export async function servePage({ files, policy, port }) {
  const server = createServer((request, response) => answer(request, response, { files, policy }))
  const origin = `http://127.0.0.1:${await listen(server, port)}/`
  return {
    origin,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
