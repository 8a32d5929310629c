/** As `mqwire.d.ts`, for `import 'mqwire/testing'` in Node. */
export * from '../src/testing/node.js'
