/** As `mqwire.d.ts`, for `import 'mqwire/typed'`. */
export * from '../src/typed/index.js'
