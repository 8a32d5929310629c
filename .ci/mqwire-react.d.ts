/** As `mqwire.d.ts`, for `import 'mqwire/react'`. */
export * from '../src/react/index.js'
