/**
 * Reads a TypeScript file: where it can be changed at random, and its regions, the parts that run as a whole or not at all.
 *
 * A site is a node of the syntax tree with one or more changes of it. Types, strings, templates, imports and comments have no site. The reader may assume a
 * source that compiles. A change leaves a source that a bundler can read; its types may be wrong.
 */
import ts from 'typescript-5.2'

/** One change: a part of the text, and what stands there instead. */
export interface Change {
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** The change on one line. */
  readonly change: string
}

/** A part of a source that runs as a whole or not at all, but for what it calls; region 0 is the whole file. */
interface Region {
  readonly start: number
  readonly end: number
}

/** What a file is made of. */
export interface Places {
  /** In the order in which they begin, each with at least one change. */
  readonly sites: readonly (readonly Change[])[]
  readonly regions: readonly Region[]
  /** The source in which each region says so when it runs: `mutantAt(first + number of the region)`. */
  marked(first: number): string
}

const { SyntaxKind: Kind } = ts

const swaps = new Map<ts.SyntaxKind, readonly string[]>([
  [Kind.LessThanToken, ['<=', '>=']],
  [Kind.LessThanEqualsToken, ['<', '>']],
  [Kind.GreaterThanToken, ['>=', '<=']],
  [Kind.GreaterThanEqualsToken, ['>', '<']],
  [Kind.EqualsEqualsEqualsToken, ['!==']],
  [Kind.ExclamationEqualsEqualsToken, ['===']],
  [Kind.EqualsEqualsToken, ['!=']],
  [Kind.ExclamationEqualsToken, ['==']],
  [Kind.PlusToken, ['-']],
  [Kind.MinusToken, ['+']],
  [Kind.AsteriskToken, ['/']],
  [Kind.SlashToken, ['*']],
  [Kind.PercentToken, ['*']],
  [Kind.AmpersandToken, ['|']],
  [Kind.BarToken, ['&']],
  [Kind.LessThanLessThanToken, ['>>']],
  [Kind.GreaterThanGreaterThanToken, ['<<']],
  [Kind.GreaterThanGreaterThanGreaterThanToken, ['<<']],
  [Kind.AmpersandAmpersandToken, ['||']],
  [Kind.BarBarToken, ['&&']],
  [Kind.QuestionQuestionToken, ['&&']],
  [Kind.PlusEqualsToken, ['-=']],
  [Kind.MinusEqualsToken, ['+=']],
])

const logical = new Set([
  Kind.AmpersandAmpersandToken,
  Kind.BarBarToken,
  Kind.QuestionQuestionToken,
])

/** Of two texts they make one, and of nothing else the other operator does. */
const joins = new Set<ts.SyntaxKind>([Kind.PlusToken, Kind.PlusEqualsToken])

function isAssignment(node: ts.Expression): boolean {
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken
    return kind >= Kind.FirstAssignment && kind <= Kind.LastAssignment
  }
  const steps: readonly ts.SyntaxKind[] = [Kind.PlusPlusToken, Kind.MinusMinusToken]
  return (
    (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) &&
    steps.includes(node.operator)
  )
}

function isText(node: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(node)) return isText(node.expression)
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === Kind.PlusToken)
    return isText(node.left) || isText(node.right)
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)
}

/** A statement without braces that a condition decides on. */
function isBranch(node: ts.Node): boolean {
  const { parent } = node
  if (ts.isIfStatement(parent))
    return node === parent.thenStatement || node === parent.elseStatement
  return ts.isIterationStatement(parent, false) && node === parent.statement
}

/** An expression that runs by itself: a body of an arrow function, an initial value, or what a condition decides on. */
function isPart(node: ts.Node): boolean {
  const { parent } = node
  if (ts.isArrowFunction(parent)) return node === parent.body
  if (ts.isPropertyDeclaration(parent) || ts.isParameter(parent)) return node === parent.initializer
  if (ts.isConditionalExpression(parent))
    return node === parent.whenTrue || node === parent.whenFalse
  return (
    ts.isBinaryExpression(parent) && node === parent.right && logical.has(parent.operatorToken.kind)
  )
}

/** Nodes without any site below them. */
function isDeaf(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isTemplateExpression(node)
  )
}

interface Insert {
  readonly at: number
  readonly text: (first: number) => string
}

const oneLine = (text: string): string => text.trim().replace(/\s+/g, ' ')

class Reader implements Places {
  readonly sites: Change[][] = []
  readonly regions: Region[] = []
  readonly #opening: Insert[] = []
  readonly #closing: Insert[] = []
  readonly #source: ts.SourceFile

  constructor(file: string, text: string) {
    this.#source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TS)
    this.regions.push({ start: 0, end: text.length })
    this.#read(this.#source)
  }

  marked(first: number): string {
    let made = ''
    let at = 0
    // Sorting is stable: at one place the inner is closed before the outer, and what closes stands before what opens.
    for (const insert of [...this.#closing.toReversed(), ...this.#opening].sort(
      (one, other) => one.at - other.at,
    )) {
      made += this.#source.text.slice(at, insert.at) + insert.text(first)
      at = insert.at
    }
    return made + this.#source.text.slice(at)
  }

  #read(node: ts.Node): void {
    if (isDeaf(node)) return
    this.#region(node)
    this.#binary(node)
    this.#not(node)
    this.#number(node)
    this.#condition(node)
    this.#statement(node)
    this.#result(node)
    this.#entry(node)
    ts.forEachChild(node, (child) => this.#read(child))
  }

  #text(node: ts.Node): string {
    return node.getText(this.#source)
  }

  #mark(start: number, end: number, before: string, after: string, closing: string): void {
    const number = this.regions.length
    this.regions.push({ start, end })
    this.#opening.push({
      at: start,
      text: (first) => `${before}mutantAt(${first + number})${after}`,
    })
    if (closing !== '') this.#closing.push({ at: end, text: () => closing })
  }

  #region(node: ts.Node): void {
    const { parent } = node
    if (parent === undefined) return
    const start = node.getStart(this.#source)
    if (ts.isBlock(node)) this.#mark(start + 1, node.getEnd(), '', ';', '')
    else if (ts.isCaseOrDefaultClause(node)) {
      const [statement] = node.statements
      if (statement !== undefined)
        this.#mark(statement.getStart(this.#source), node.getEnd(), '', ';', '')
    } else if (isBranch(node)) this.#mark(start, node.getEnd(), '{', ';', '}')
    else if (isPart(node)) this.#mark(start, node.getEnd(), '(', ',', ')')
  }

  #replace(node: ts.Node, replacements: readonly string[]): void {
    const start = node.getStart(this.#source)
    const change = (replacement: string): string =>
      `${oneLine(this.#text(node))} → ${oneLine(replacement)}`
    this.sites.push(
      replacements.map((replacement) => ({
        start,
        end: node.getEnd(),
        replacement,
        change: change(replacement),
      })),
    )
  }

  #binary(node: ts.Node): void {
    if (!ts.isBinaryExpression(node)) return
    const { left, right, operatorToken } = node
    const others = swaps.get(operatorToken.kind)
    if (others === undefined || (joins.has(operatorToken.kind) && (isText(left) || isText(right))))
      return
    // Operands that are logical themselves may not stand beside another operator bare.
    const side = (operand: ts.Expression): string =>
      logical.has(operatorToken.kind) ? `(${this.#text(operand)})` : this.#text(operand)
    // Nor may the whole, in a chain of ??.
    const chained =
      ts.isBinaryExpression(node.parent) &&
      node.parent.operatorToken.kind === Kind.QuestionQuestionToken
    const whole = (text: string): string =>
      chained && logical.has(operatorToken.kind) ? `(${text})` : text
    this.#replace(
      node,
      others.map((other) => whole(`${side(left)} ${other} ${side(right)}`)),
    )
  }

  #not(node: ts.Node): void {
    if (ts.isPrefixUnaryExpression(node) && node.operator === Kind.ExclamationToken)
      this.#replace(node, [this.#text(node.operand)])
  }

  #number(node: ts.Node): void {
    if (
      !ts.isNumericLiteral(node) ||
      (ts.isPropertyAssignment(node.parent) && node.parent.name === node)
    )
      return
    this.#replace(node, [`${this.#text(node)} + 1`, `${this.#text(node)} - 1`])
  }

  #condition(node: ts.Node): void {
    const isTest = ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)
    const loop = isTest ? !ts.isIfStatement(node) : ts.isForStatement(node)
    const condition = isTest
      ? node.expression
      : ts.isForStatement(node) || ts.isConditionalExpression(node)
        ? node.condition
        : undefined
    if (condition === undefined || condition.kind === Kind.TrueKeyword) return
    // A loop that never ends says nothing.
    if (loop) return this.#replace(condition, ['false'])
    const isNot =
      ts.isPrefixUnaryExpression(condition) && condition.operator === Kind.ExclamationToken
    this.#replace(
      condition,
      isNot ? ['true', 'false'] : [`!(${this.#text(condition)})`, 'true', 'false'],
    )
  }

  #statement(node: ts.Node): void {
    if (!ts.isExpressionStatement(node)) return
    let { expression } = node
    while (ts.isAwaitExpression(expression) || ts.isVoidExpression(expression))
      expression = expression.expression
    const isSuper =
      ts.isCallExpression(expression) && expression.expression.kind === Kind.SuperKeyword
    const isCall =
      (ts.isCallExpression(expression) || ts.isDeleteExpression(expression)) && !isSuper
    if (!isCall && !isAssignment(expression)) return
    this.sites.push([
      {
        start: node.getStart(this.#source),
        end: node.getEnd(),
        replacement: '{}',
        change: `- ${oneLine(this.#text(node))}`,
      },
    ])
  }

  #result(node: ts.Node): void {
    if (!ts.isReturnStatement(node) || node.expression === undefined) return
    const value = this.#text(node.expression)
    if (value === 'undefined') return
    this.#replace(node.expression, [
      value === 'true' ? 'false' : value === 'false' ? 'true' : 'undefined',
    ])
  }

  #entry(node: ts.Node): void {
    if (!ts.isFunctionLike(node) || ts.isConstructorDeclaration(node)) return
    const body = (node as ts.FunctionLikeDeclaration).body
    if (body === undefined || !ts.isBlock(body) || body.statements.length < 2) return
    const at = body.getStart(this.#source) + 1
    this.sites.push([{ start: at, end: at, replacement: ' return;', change: '+ return' }])
  }
}

/** Reads one file. */
export const placesOf = (file: string, text: string): Places => new Reader(file, text)

/** What a module loads of others, as it stands there; what only types need is left out. */
export function importsOf(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TS)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    const given =
      ts.isImportDeclaration(node) && node.importClause?.isTypeOnly !== true
        ? node.moduleSpecifier
        : undefined
    const passed =
      ts.isExportDeclaration(node) && !node.isTypeOnly ? node.moduleSpecifier : undefined
    const called =
      ts.isCallExpression(node) && node.expression.kind === Kind.ImportKeyword
        ? node.arguments[0]
        : undefined
    for (const each of [given, passed, called])
      if (each !== undefined && ts.isStringLiteralLike(each)) found.push(each.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}
