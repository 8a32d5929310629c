/** As `mqwire.d.ts`, for `import 'mqwire/compat'`. */
export * from '../src/compat/index.js'
export { default } from '../src/compat/index.js'
