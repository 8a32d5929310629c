/**
 * What MQTT.js has, read from its own type declarations: options with everything they inherit, public members, events, exports.
 *
 * It knows which type stands behind which table of the guide; names come from the declarations alone. An option whose type is written out in place
 * (`will`, `properties`) brings its fields along, as `will.topic`.
 */
import path from 'node:path'
import ts from 'typescript-5.2'
import { root } from './fixture.js'

/** Heading of a table in the guide → the names that it must have. */
export type Names = ReadonlyMap<string, ReadonlySet<string>>

const modules = path.join(root, 'node_modules', 'mqtt', 'build')
const files = ['index.d.ts', 'lib/store.d.ts'].map((name) => path.join(modules, name))

/** Reads the declarations of the installed MQTT.js. */
export function mqttjsNames(): Names {
  const reader = new Reader()
  const options = reader.fieldsOf('IClientOptions')
  const [will, properties] = ['will.properties.', 'properties.']
  const { members, methods } = reader.membersOf('MqttClient')
  const sets: Record<string, readonly string[]> = {
    'Options of connect': options.filter(
      (name) => !name.startsWith(will) && !name.startsWith(properties),
    ),
    'The will': below(will, options),
    'Properties of CONNECT': below(properties, options),
    'Options of publish': reader.fieldsOf('IClientPublishOptions'),
    'Options of subscribe': [
      'IClientSubscribeOptions',
      'ISubscriptionRequest',
      'ISubscriptionMap',
    ].flatMap((name) => reader.fieldsOf(name)),
    'Options of unsubscribe': reader.fieldsOf('IClientUnsubscribeProperties'),
    'Options of reconnect': reader.fieldsOf('IClientReconnectOptions'),
    'Options of end': reader.fieldsOf('IDisconnectPacket'),
    'The module': reader.values(),
    Methods: methods,
    Properties: members,
    Events: reader.fieldsOf('MqttClientEventCallbacks'),
    Stores: [...reader.fieldsOf('IStore'), ...reader.fieldsOf('IStoreOptions')],
    'A message': reader.fieldsOf('IPublishPacket'),
    'What the server said': reader.fieldsOf('IConnackPacket'),
  }
  return new Map(Object.entries(sets).map(([heading, names]) => [heading, new Set(names)]))
}

function below(prefix: string, names: readonly string[]): string[] {
  return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
}

class Reader {
  readonly #checker: ts.TypeChecker
  readonly #exports: readonly ts.Symbol[]

  constructor() {
    const { NodeNext } = ts.ModuleKind
    const options = {
      module: NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      strict: true,
      noEmit: true,
      types: ['node'],
    }
    const program = ts.createProgram(files, options)
    this.#checker = program.getTypeChecker()
    this.#exports = files.flatMap((file) => {
      const source = program.getSourceFile(file)
      const symbol = source && this.#checker.getSymbolAtLocation(source)
      if (symbol === undefined) throw new Error(`${file} is no module`)
      return this.#checker.getExportsOfModule(symbol)
    })
  }

  /** Fields of an exported interface or type. */
  fieldsOf(name: string): string[] {
    return this.#fields(this.#checker.getDeclaredTypeOfSymbol(this.#exported(name)))
  }

  /** Public members of an exported class, static and inherited ones included. */
  membersOf(name: string): { readonly members: string[]; readonly methods: string[] } {
    const symbol = this.#exported(name)
    const types = [
      this.#checker.getDeclaredTypeOfSymbol(symbol),
      this.#checker.getTypeOfSymbol(symbol),
    ]
    const all = types.flatMap((type) => this.#checker.getPropertiesOfType(type)).filter(isPublic)
    const isMethod = ({ flags }: ts.Symbol) => (flags & ts.SymbolFlags.Method) !== 0
    const namesOf = (symbols: readonly ts.Symbol[]) => symbols.map((each) => each.name)
    return {
      members: namesOf(all.filter((each) => !isMethod(each))),
      methods: namesOf(all.filter(isMethod)),
    }
  }

  /** What the package exports at run time. */
  values(): string[] {
    const [file] = files
    return this.#exports
      .filter(
        (each) =>
          (this.#resolved(each).flags & ts.SymbolFlags.Value) !== 0 &&
          (each.name !== 'default' || isIn(each, file)),
      )
      .map((each) => each.name)
  }

  #exported(name: string): ts.Symbol {
    const found = this.#exports.find((each) => each.name === name)
    if (found === undefined) throw new Error(`MQTT.js exports no ${name}`)
    return this.#resolved(found)
  }

  #resolved(symbol: ts.Symbol): ts.Symbol {
    return (symbol.flags & ts.SymbolFlags.Alias) === 0
      ? symbol
      : this.#checker.getAliasedSymbol(symbol)
  }

  #fields(type: ts.Type, prefix = ''): string[] {
    return this.#checker.getPropertiesOfType(type).flatMap((field) => {
      const name = prefix + field.name
      const inner = this.#literal(
        this.#checker.getNonNullableType(this.#checker.getTypeOfSymbol(field)),
      )
      return inner === undefined ? [name] : [name, ...this.#fields(inner, `${name}.`)]
    })
  }

  // A type written out in place, or a list of such; functions have no fields.
  #literal(type: ts.Type): ts.ObjectType | undefined {
    const [item] = this.#checker
      .getIndexInfosOfType(type)
      .filter(({ keyType }) => keyType.flags & ts.TypeFlags.Number)
    const inner = item?.type ?? type
    if ((inner.flags & ts.TypeFlags.Object) === 0) return undefined
    const object = inner as ts.ObjectType
    return (object.objectFlags & ts.ObjectFlags.Anonymous) === 0 ? undefined : object
  }
}

function isPublic(symbol: ts.Symbol): boolean {
  if ((symbol.flags & ts.SymbolFlags.Prototype) !== 0) return false
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
  return (symbol.declarations ?? []).every(
    (each) => (ts.getCombinedModifierFlags(each) & hidden) === 0,
  )
}

function isIn(symbol: ts.Symbol, file: string | undefined): boolean {
  return (symbol.declarations ?? []).some(
    (each) => path.resolve(each.getSourceFile().fileName) === file,
  )
}
