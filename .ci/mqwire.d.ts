/**
 * What `import 'mqwire'` means when the repository itself is type-checked: the sources, so that nothing has to be built for it. A declaration and not the
 * source itself, because bundlers follow the paths of tsconfig.json too, and these are to take the built package: they pass over declarations.
 */
export * from '../src/client/browser.js'
