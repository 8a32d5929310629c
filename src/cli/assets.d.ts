/**
 * Files that the build puts into the command as text.
 */
declare module '*.iife.min.js' {
  const text: string
  export default text
}
declare module '*.min.css' {
  const text: string
  export default text
}
