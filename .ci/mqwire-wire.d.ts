/** As `mqwire.d.ts`, for `import 'mqwire/wire'`. */
export * from '../src/wire/index.js'
