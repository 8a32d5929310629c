/**
 * Topic templates such as `plant/{line}/{device}/temperature`: create names and filters, and match
 * names, with typed parameters.
 *
 * Matched names come from peers: each is scanned once, without regular expressions, and a mismatch
 * allocates nothing.
 */
import { MqttError, printable } from '../errors.js'

/** Parses a parameter in braces: its name and type. */
type Slot<Text extends string> = Text extends `${infer Name}:number`
  ? [Name, number]
  : Text extends `${infer Name}...`
    ? [Name, string]
    : [Text, string]

/** The levels of a topic. */
type Levels<Text extends string> = Text extends `${infer Head}/${infer Tail}`
  ? Head | Levels<Tail>
  : Text

/** The parameters in a template, each with its type. */
type Slots<Text extends string> =
  Levels<Text> extends infer Level
    ? Level extends `{${infer Inner}}`
      ? Slot<Inner>
      : never
    : never

/**
 * The parameters of a template, as {@link TopicTemplate.match} returns them. A template that is not
 * a literal type may have any.
 */
export type Params<Template extends string> = string extends Template
  ? Readonly<Record<string, string | number>>
  : { readonly [S in Slots<Template> as S[0]]: S[1] }

/**
 * The parameters of a template, as callers pass them: numbers are accepted for any level. For
 * `'#'`, the topic or filter itself.
 */
export type GivenParams<Template extends string> = string extends Template
  ? Readonly<Record<string, string | number>>
  : Template extends '#'
    ? string
    : { readonly [S in Slots<Template> as S[0]]: S[1] extends number ? number : string | number }

/** True for a template without parameters, whose calls have no argument for them. */
export type IsPlain<Template extends string> = string extends Template
  ? false
  : Template extends '#'
    ? false
    : [Slots<Template>] extends [never]
      ? true
      : false

/** Arguments with the parameters first, if there are any. */
export type ParamsFirst<Template extends string, Rest extends unknown[]> =
  IsPlain<Template> extends true ? Rest : [params: GivenParams<Template>, ...Rest]

/** As {@link ParamsFirst}, with all or some of the parameters. */
export type SomeFirst<Template extends string, Rest extends unknown[]> =
  IsPlain<Template> extends true ? Rest : [params?: Partial<GivenParams<Template>>, ...Rest]

/** What is wrong with a level, as a sentence; never if valid. */
type LevelFault<Level extends string, Last extends boolean> = Level extends ''
  ? 'A level of a topic template must not be empty.'
  : Level extends `{${infer Name}}`
    ? Name extends `${infer Bare}...`
      ? Last extends true
        ? NameFault<Bare>
        : `A parameter for the rest stands in the last place only, and '${Level}' does not.`
      : Name extends `${infer Bare}:${infer Kind}`
        ? Kind extends 'number'
          ? NameFault<Bare>
          : `A parameter is text or a number, as in {n:number}, and not '${Kind}'.`
        : NameFault<Name>
    : Level extends `${string}${'{' | '}'}${string}`
      ? `A parameter is a whole level, as in a/{id}, and '${Level}' is not.`
      : Level extends `${string}${'+' | '#'}${string}`
        ? `A topic template has no wildcards: a parameter stands for one, and '${Level}' does not.`
        : never

/** Characters not allowed in parameter names (those on a keyboard). */
type Mark =
  | ' '
  | '!'
  | '"'
  | '%'
  | '&'
  | "'"
  | '('
  | ')'
  | '*'
  | ','
  | '-'
  | '.'
  | ':'
  | ';'
  | '<'
  | '='
  | '>'
  | '?'
  | '@'
  | '['
  | '\\'
  | ']'
  | '^'
  | '`'
type OtherMark = '|' | '~' | '{' | '}' | '+' | '#'

/** What is wrong with a parameter name, as a sentence; never if valid. */
type NameFault<Name extends string> = Name extends ''
  ? 'A parameter has a name, as in {id}.'
  : Name extends `${string}${Mark | OtherMark}${string}` | '__proto__'
    ? `A parameter is named with letters, digits and _, and '${Name}' is not.`
    : never

/** What is wrong with a template, as a sentence; never if valid. */
type Faults<Text extends string, Seen = never> = Text extends `${infer Head}/${infer Tail}`
  ? LevelFault<Head, false> | Again<Head, Seen> | Faults<Tail, Seen | NameIn<Head>>
  : LevelFault<Text, true> | Again<Text, Seen>

type NameIn<Level extends string> = Level extends `{${infer Inner}}` ? Slot<Inner>[0] : never

/** What is wrong with a repeated parameter, as a sentence; never if valid. */
type Again<Level extends string, Seen> =
  NameIn<Level> extends infer Name extends string
    ? [Name] extends [never]
      ? never
      : Name extends Seen
        ? `A parameter is named once, and '${Name}' is named twice.`
        : never
    : never

/** The template itself or, if it is invalid, a sentence that says why. */
export type Checked<Template extends string> = string extends Template
  ? Template
  : Template extends '#'
    ? Template
    : [Faults<Template>] extends [never]
      ? Template
      : Faults<Template>

/** One level of a template: a text, or the name of a parameter. */
interface Level {
  readonly text: string
  /** The name in braces; undefined for a text. */
  readonly name: string | undefined
  readonly kind: 'text' | 'number' | 'rest'
}

/** Options of {@link TopicTemplate.filter}. */
export interface FilterOptions {
  /** Name of a shared subscription (section 4.8.2). Default: not shared. */
  readonly share?: string | undefined
}

/** The template for every topic: callers pass whole names and filters. */
const every = '#'

/**
 * A topic with parameters; or `'#'` for every topic, where callers pass the topic or filter itself
 * in place of parameters.
 */
export class TopicTemplate<Template extends string = string> {
  /** The text of the template. */
  readonly template: Template
  /** Names of the parameters, in order; `topic` for `'#'`. */
  readonly parameters: readonly string[]
  readonly #levels: readonly Level[]

  /** @throws MqttError ERR_INVALID_TOPIC for a template that is not valid */
  constructor(template: Checked<Template>) {
    const text: unknown = template
    if (typeof text !== 'string') fail('a template is text', text)
    const parts = text === every ? [] : text.split('/')
    this.#levels = parts.map((part, index) => levelOf(part, index === parts.length - 1))
    this.template = template as unknown as Template
    this.parameters = text === every ? ['topic'] : this.#levels.flatMap(({ name }) => name ?? [])
    if (new Set(this.parameters).size < this.parameters.length)
      fail('a parameter is named twice', text)
  }

  /**
   * The Topic Name (section 4.7) with these parameters.
   * @throws MqttError ERR_INVALID_TOPIC that names the parameter
   */
  name(...[params]: ParamsFirst<Template, []>): string {
    return this.#join(params, undefined)
  }

  /**
   * The Topic Filter with `+` where a parameter is left out, and `#` for the rest (section 4.7.1).
   * @throws MqttError ERR_INVALID_TOPIC that names the parameter; also for a parameter that is
   * undefined, and for null in place of the parameters, which would match every topic. Undefined in
   * place of the parameters counts as omitted
   */
  filter(params: Partial<GivenParams<Template>> = {}, { share }: FilterOptions = {}): string {
    // A Map or an array has no named parameters and would match every topic.
    const isObject = Object.prototype.toString.call(params) === '[object Object]'
    if (!isObject && (this.template !== every || typeof params === 'object'))
      fail('parameters must be an object; left out, they stand for any', params, 'params')
    const filter =
      this.template === every &&
      isObject &&
      !('topic' in params) &&
      Object.keys(params).length === 0
        ? every
        : this.#join(params, '+')
    return share === undefined ? filter : `$share/${levelText(share, 'share', false)}/${filter}`
  }

  /**
   * The parameters of a Topic Name; undefined if it does not match. A name with an empty level
   * matches only `'#'`, whose matches have no parameters.
   */
  match(name: string): Params<Template> | undefined {
    if (!this.#walk(name)) return undefined
    const found: Record<string, string | number> = {}
    this.#walk(name, found)
    return found as Params<Template>
  }

  /** The text of the template, for `JSON.stringify`. */
  toJSON(): string {
    return this.template
  }

  // Matches level by level; puts the parameters into `found` if given.
  #walk(name: string, found?: Record<string, string | number>): boolean {
    if (this.template === every) return true
    let at = 0
    for (const { text, name: parameter, kind } of this.#levels) {
      const rest = kind === 'rest'
      // The name has ended: only a rest of zero levels still matches.
      if (at > name.length) {
        if (rest && found) found[parameter as string] = ''
        return rest
      }
      const slash = rest ? -1 : name.indexOf('/', at)
      const end = slash < 0 ? name.length : slash
      if (end === at) return false
      if (parameter === undefined) {
        if (end - at !== text.length || !name.startsWith(text, at)) return false
      } else if (
        rest
          ? name[at] === '/' || name.endsWith('/') || name.includes('//', at)
          : kind === 'number' && !isCanonical(name, at, end)
      ) {
        return false
      } else if (found) {
        const level = name.slice(at, end)
        found[parameter] = kind === 'number' ? Number(level) : level
      }
      at = end + 1
    }
    return at > name.length
  }

  #join(params: object | string | undefined, wildcard: string | undefined): string {
    if (this.template === every) {
      if (typeof params !== 'string') fail("in the place of '#' a topic is given, as text", params)
      return wildcard === undefined ? nameText(params) : params
    }
    const given = Object(params) as Readonly<Record<string, unknown>>
    for (const key of Object.keys(given))
      if (!this.parameters.includes(key)) fail(`'${this.template}' has no parameter`, key, key)
    const levels = this.#levels.map(({ text, name, kind }) => {
      if (name === undefined) return text
      // Accepts getters of class instances, but not the members of `Object.prototype`.
      const isGiven = Object.hasOwn(given, name) || (name in given && !(name in Object.prototype))
      const value = isGiven ? given[name] : undefined
      if (isGiven && value === undefined)
        fail(`parameter '${name}' must have a value; left out, it stands for any`, value, name)
      if (!isGiven && wildcard !== undefined) return kind === 'rest' ? '#' : wildcard
      if (kind === 'number' && !(typeof value === 'number' && isCanonical(String(value), 0)))
        fail(`parameter '${name}' must be a number`, value, name)
      return levelText(value, name, kind === 'rest')
    })
    // A rest of zero levels has no slash before it.
    if (levels.length > 1 && levels.at(-1) === '') levels.pop()
    const topic = levels.join('/')
    return topic === '' ? fail('the topic is empty', topic) : topic
  }
}

/**
 * Creates a topic template; `'#'` matches every topic.
 * @throws MqttError ERR_INVALID_TOPIC for one that is not valid
 */
export function topic<Template extends string>(
  template: Checked<Template>,
): TopicTemplate<Template> {
  return new TopicTemplate<Template>(template)
}

function levelOf(part: string, last: boolean): Level {
  const inner = part.startsWith('{') && part.endsWith('}') ? part.slice(1, -1) : undefined
  if (inner === undefined) {
    if (part.includes('{') || part.includes('}')) fail('a parameter is a whole level', part)
    return { text: levelText(part, 'level', false), name: undefined, kind: 'text' }
  }
  const rest = inner.endsWith('...')
  const number = inner.endsWith(':number')
  const name = rest ? inner.slice(0, -3) : number ? inner.slice(0, -7) : inner
  if (rest && !last) fail('the rest comes last', part)
  if (!isName(name)) fail('a name has letters, digits and _', part)
  return { text: '', name, kind: rest ? 'rest' : number ? 'number' : 'text' }
}

function isName(name: string): boolean {
  for (const unit of name)
    if (!('_$'.includes(unit) || isDigit(unit)) && unit.toLowerCase() === unit.toUpperCase())
      return false
  return name !== '' && name !== '__proto__'
}

// Text for a level; for a rest parameter, several levels or none.
function levelText(value: unknown, name: string, rest: boolean): string {
  const text =
    typeof value === 'string' || Number.isFinite(value)
      ? String(value)
      : fail(`'${name}' must be text or a finite number`, value, name)
  if (rest ? text !== '' && `/${text}/`.includes('//') : text === '')
    fail(`'${name}' must have no empty level`, text, name)
  for (const unit of text)
    if ((rest ? '+#\0' : '+#/\0').includes(unit) || isHalf(unit))
      fail(`'${name}' must hold no + # / or U+0000, nor half a character`, text, name)
  return text
}

// Checks a topic that is passed whole.
function nameText(text: string): string {
  if (text === '') fail('the topic is empty', text)
  for (const unit of text)
    if ('+#\0'.includes(unit) || isHalf(unit))
      fail('a topic must hold no + # or U+0000, nor half a character', text)
  return text
}

// True for a decimal as `String` writes it, so that matching and formatting are inverse: no plus
// sign, no superfluous zeros, no exponent.
function isCanonical(text: string, from: number, to = text.length): boolean {
  const start = text.startsWith('-', from) ? from + 1 : from
  let point = to
  for (let at = start; at < to; at++) {
    if (text[at] === '.' && point === to && at > start) point = at
    else if (!isDigit(text[at] as string)) return false
  }
  const last = text[to - 1] as string
  if (!isDigit(last) || (last === '0' && (point < to || (start > from && to - start === 1))))
    return false
  if (
    text[start] === '0' &&
    to > start + 1 &&
    (point > start + 1 || text.startsWith('0.000000', start))
  )
    return false
  // Up to 15 digits always survive conversion to a number; longer ones are compared.
  const digits = to - start > 15 ? text.slice(from, to) : ''
  return digits === '' || String(Number(digits)) === digits
}

/** True for a lone surrogate: half a character. */
export function isHalf(unit: string): boolean {
  return unit.length === 1 && unit >= '\ud800' && unit <= '\udfff'
}

function isDigit(unit: string): boolean {
  return unit >= '0' && unit <= '9'
}

function fail(what: string, given: unknown, option = 'topic'): never {
  const kind = given === null ? 'null' : Array.isArray(given) ? 'array' : typeof given
  throw new MqttError(
    'ERR_INVALID_TOPIC',
    `${what}: ${printable(typeof given === 'string' ? given : kind)}`,
    { option },
  )
}
