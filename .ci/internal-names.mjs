/**
 * Names of properties that nobody outside of the package can reach: the build shortens them, so that a clear name costs a page nothing.
 *
 * A name is in `internal-names.json` when a member of src/client or src/wire bears it, none of src/wasm, and when it is none of these: reachable
 * through the types of a public entry, a property of something that the platform or the language has, or the text of a string.
 *
 *     node .ci/internal-names.mjs            says what is wrong with the list
 *     node .ci/internal-names.mjs --write    makes it anew; names below `kept` stay long
 *
 * The order of the list is the one that compresses best, found by `order.mjs`: the first names get the shortest ones.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript-5.2'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = path.join(root, 'src')
const listFile = path.join(root, '.ci', 'internal-names.json')

/** Keys of option tables that no type tells of, and a property of the global object. */
const kept = ['Buffer', 'checkPayloadFormat', 'released', 'strictTopics']

/** Texts of errors, events and states that are names of properties by chance: no property is looked up by them. */
const said = ['blocked', 'connection', 'finish', 'group', 'hidden', 'leaving', 'options', 'sent']

/** The committed list. */
export const internalNames = JSON.parse(readFileSync(listFile, 'utf8'))

const isOurs = (file) => file.startsWith(source)
const placeOf = (node) => path.relative(source, node.getSourceFile().fileName).split(path.sep)[0]

function isForeign(symbol) {
  const declarations = symbol?.declarations ?? []
  return declarations.length === 0 || declarations.some((node) => !isOurs(node.getSourceFile().fileName))
}

function isMember(node) {
  return (
    ts.isPropertySignature(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isMethodSignature(node) ||
    ts.isGetAccessor(node) ||
    ts.isSetAccessor(node)
  )
}

/** Entries of the exports map as sources. */
function entries() {
  const found = new Set()
  const walk = (value) => {
    if (typeof value !== 'string') for (const each of Object.values(value)) walk(each)
    else if (value.endsWith('.js')) found.add(path.join(root, value.replace('./dist/', 'src/').replace(/\.js$/, '.ts')))
  }
  walk(JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).exports)
  // These are built as they are, over public names only: see `build.mjs`.
  for (const room of ['react', 'compat']) found.delete(path.join(source, room, 'index.ts'))
  return [...found]
}

function programOf() {
  const { config } = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, root)
  return ts.createProgram(entries(), options)
}

// Nobody can call the constructor of a class that is exported as a type.
function isTypeOnly({ declarations = [] }) {
  return declarations.every((node) => ts.isExportSpecifier(node) && (node.isTypeOnly || node.parent.parent.isTypeOnly))
}

/** Every property name that a user's code can see through the types of the entries. */
function publicNames(program) {
  const checker = program.getTypeChecker()
  const names = new Set()
  const seen = new Set()
  const visitSymbol = (symbol) => {
    if (symbol.name.startsWith('#') || symbol.name.startsWith('__#')) return
    names.add(symbol.name)
    if (!seen.has(symbol)) visit(checker.getTypeOfSymbol(symbol))
    seen.add(symbol)
  }
  const visit = (type) => {
    if (type === undefined || seen.has(type)) return
    seen.add(type)
    for (const each of type.isUnionOrIntersection() ? type.types : []) visit(each)
    if (type.isStringLiteral()) names.add(type.value)
    if (type.objectFlags & ts.ObjectFlags.Reference) for (const each of checker.getTypeArguments(type)) visit(each)
    // What `Pick` and its like give is declared by the language, and has the properties of ours.
    const isNamed = type.symbol?.declarations?.length > 0 && !(type.symbol.flags & ts.SymbolFlags.TypeLiteral)
    if (isNamed && isForeign(type.symbol)) return
    for (const property of type.getProperties()) visitSymbol(property)
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      for (const parameter of signature.getParameters()) visit(checker.getTypeOfSymbol(parameter))
      visit(signature.getReturnType())
    }
    for (const each of [type.getStringIndexType(), type.getNumberIndexType(), type.getConstraint(), ...(type.getBaseTypes() ?? [])]) visit(each)
  }
  for (const entry of entries()) {
    for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)))) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      names.add(exported.name)
      if (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) visit(checker.getDeclaredTypeOfSymbol(symbol))
      if (symbol.flags & ts.SymbolFlags.Value && !isTypeOnly(exported)) visit(checker.getTypeOfSymbol(symbol))
    }
  }
  return names
}

/** Members of what the language itself has: a class may offer one without saying so. */
function languageNames() {
  const folder = path.join(root, 'node_modules', 'typescript-5.2', 'lib')
  const names = new Set()
  const visit = (node) => {
    if (isMember(node) && ts.isIdentifier(node.name)) names.add(node.name.text)
    ts.forEachChild(node, visit)
  }
  for (const name of readdirSync(folder).filter((file) => /^lib\.es.*\.d\.ts$/.test(file)))
    visit(ts.createSourceFile(name, readFileSync(path.join(folder, name), 'utf8'), ts.ScriptTarget.ES2022))
  return names
}

/** Members with the folders that declare them, names that are used on something foreign, and the texts of strings. */
function usedNames(program) {
  const checker = program.getTypeChecker()
  const [members, foreign, texts] = [new Map(), new Set(), new Set()]
  const partsOf = (type) => (type === undefined ? [] : type.isUnion() ? type.types : [type])
  const visitLiteral = (node) => {
    const types = partsOf(checker.getContextualType(node))
    for (const { name } of node.properties) {
      if (name === undefined || !ts.isIdentifier(name)) continue
      const found = types.map((type) => type.getProperty(name.text)).filter((symbol) => symbol !== undefined)
      if (found.some(isForeign)) foreign.add(name.text)
    }
  }
  const visitPattern = (node) => {
    const type = checker.getTypeAtLocation(node)
    for (const { name, propertyName = name } of node.elements)
      if (ts.isIdentifier(propertyName) && isForeign(type.getProperty(propertyName.text))) foreign.add(propertyName.text)
  }
  const visit = (node) => {
    if (isMember(node) && ts.isIdentifier(node.name)) members.set(node.name.text, [...(members.get(node.name.text) ?? []), placeOf(node)])
    else if (ts.isPropertyAccessExpression(node) && !ts.isPrivateIdentifier(node.name)) {
      if (isForeign(checker.getSymbolAtLocation(node.name))) foreign.add(node.name.text)
    } else if (ts.isObjectLiteralExpression(node)) visitLiteral(node)
    else if (ts.isObjectBindingPattern(node)) visitPattern(node)
    else if (ts.isStringLiteralLike(node) && !ts.isImportDeclaration(node.parent) && !ts.isLiteralTypeNode(node.parent)) texts.add(node.text)
    ts.forEachChild(node, visit)
  }
  for (const file of program.getSourceFiles()) if (isOurs(file.fileName)) visit(file)
  return { members, foreign, texts }
}

/** Names that may be shortened. */
export function findInternalNames() {
  const program = programOf()
  const { members, foreign, texts } = usedNames(program)
  for (const text of said) texts.delete(text)
  const spoken = [publicNames(program), languageNames(), foreign, texts, new Set(kept)]
  const isInside = ([name, places]) => name.length > 2 && (places.includes('client') || places.includes('wire')) && !places.includes('wasm')
  const inside = [...members].filter(isInside).map(([name]) => name)
  return inside.filter((name) => !spoken.some((names) => names.has(name))).sort()
}

/** The list with these names. Who stays keeps its place, and so its short name; what is gone leaves its place to a new one, or to the last. */
function renewed(found) {
  const added = found.filter((name) => !internalNames.includes(name))
  const names = internalNames.map((name) => (found.includes(name) ? name : added.shift()))
  names.push(...added)
  while (names.includes(undefined)) {
    const last = names.pop()
    if (last !== undefined) names[names.indexOf(undefined)] = last
  }
  return names
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { write } = argumentsOf({
    usage: 'node .ci/internal-names.mjs [options]',
    about: 'Finds the names of properties that nobody outside can reach. Exits with 1 when one of the list can be reached, or is gone.',
    options: { write: { text: 'writes the list' } },
  }).values
  const found = findInternalNames()
  if (write) writeFileSync(listFile, `${JSON.stringify(renewed(found), undefined, 2)}\n`)
  const wrong = write ? [] : internalNames.filter((name) => !found.includes(name))
  for (const name of wrong) console.error(`${name} can be reached from outside, or is gone: node .ci/internal-names.mjs --write`)
  console.log(`${found.length} internal names`)
  if (wrong.length > 0) process.exitCode = 1
}
