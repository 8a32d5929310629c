/**
 * Where a source can be mutated at random, and how: reads one TypeScript file and lists its sites.
 *
 * A site is a node of the syntax tree with one or more changes of it. Types, strings, templates, what is imported and comments have none. It may assume
 * a source that compiles; a change must leave one that a bundler can read, while its types may be wrong.
 */
import ts from 'typescript-5.2'

/** How a change is planted: in place of an expression, of a statement, or as a statement at the start of a function body. */
export type Form = 'expression' | 'statement' | 'entry'

/** One change of a site. */
export interface Change {
  readonly kind: string
  readonly form: Form
  /** Where the text that is replaced begins and ends. */
  readonly start: number
  readonly end: number
  /** What stands there instead; `{}` for a statement that is gone. */
  readonly replacement: string
  /** The expression opens its statement: in parentheses it would be taken for the arguments of a call in the line before. */
  readonly opens: boolean
}

/** One site: at least one change. */
export type Site = readonly Change[]

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

const logical = new Set([Kind.AmpersandAmpersandToken, Kind.BarBarToken, Kind.QuestionQuestionToken])

/** Of two texts they make one, and of nothing else the other operator does. */
const joins = new Set<ts.SyntaxKind>([Kind.PlusToken, Kind.PlusEqualsToken])

function isAssignment(node: ts.Expression): boolean {
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken
    return kind >= Kind.FirstAssignment && kind <= Kind.LastAssignment
  }
  const steps: readonly ts.SyntaxKind[] = [Kind.PlusPlusToken, Kind.MinusMinusToken]
  return (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) && steps.includes(node.operator)
}

function isText(node: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(node)) return isText(node.expression)
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === Kind.PlusToken) return isText(node.left) || isText(node.right)
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)
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

class Reader {
  readonly sites: Site[] = []
  readonly #source: ts.SourceFile

  constructor(source: ts.SourceFile) {
    this.#source = source
  }

  read(node: ts.Node): void {
    if (isDeaf(node)) return
    this.#binary(node)
    this.#not(node)
    this.#number(node)
    this.#condition(node)
    this.#statement(node)
    this.#result(node)
    this.#entry(node)
    ts.forEachChild(node, (child) => this.read(child))
  }

  #text(node: ts.Node): string {
    return node.getText(this.#source)
  }

  #replace(node: ts.Expression, kind: string, replacements: readonly string[]): void {
    const start = node.getStart(this.#source)
    const opens = ts.isExpressionStatement(node.parent) && node.parent.getStart(this.#source) === start
    this.sites.push(replacements.map((replacement) => ({ kind, form: 'expression', start, end: node.getEnd(), replacement, opens })))
  }

  #binary(node: ts.Node): void {
    if (!ts.isBinaryExpression(node)) return
    const { left, right, operatorToken } = node
    const others = swaps.get(operatorToken.kind)
    if (others === undefined || (joins.has(operatorToken.kind) && (isText(left) || isText(right)))) return
    // Operands that are logical themselves may not stand beside another operator bare.
    const side = (operand: ts.Expression): string => (logical.has(operatorToken.kind) ? `(${this.#text(operand)})` : this.#text(operand))
    // Nor may the whole, in a chain of ??.
    const chained = ts.isBinaryExpression(node.parent) && node.parent.operatorToken.kind === Kind.QuestionQuestionToken
    const whole = (text: string): string => (chained && logical.has(operatorToken.kind) ? `(${text})` : text)
    this.#replace(
      node,
      'operator',
      others.map((other) => whole(`${side(left)} ${other} ${side(right)}`)),
    )
  }

  #not(node: ts.Node): void {
    if (ts.isPrefixUnaryExpression(node) && node.operator === Kind.ExclamationToken) this.#replace(node, 'removed !', [this.#text(node.operand)])
  }

  #number(node: ts.Node): void {
    if (!ts.isNumericLiteral(node) || (ts.isPropertyAssignment(node.parent) && node.parent.name === node)) return
    this.#replace(node, 'number', [`${this.#text(node)} + 1`, `${this.#text(node)} - 1`])
  }

  #condition(node: ts.Node): void {
    const isTest = ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)
    const loop = isTest ? !ts.isIfStatement(node) : ts.isForStatement(node)
    const condition = isTest ? node.expression : ts.isForStatement(node) || ts.isConditionalExpression(node) ? node.condition : undefined
    if (condition === undefined || condition.kind === Kind.TrueKeyword) return
    // A loop that never ends says nothing.
    if (loop) return this.#replace(condition, 'condition', ['false'])
    const isNot = ts.isPrefixUnaryExpression(condition) && condition.operator === Kind.ExclamationToken
    this.#replace(condition, 'condition', isNot ? ['true', 'false'] : [`!(${this.#text(condition)})`, 'true', 'false'])
  }

  #statement(node: ts.Node): void {
    if (!ts.isExpressionStatement(node)) return
    let { expression } = node
    while (ts.isAwaitExpression(expression) || ts.isVoidExpression(expression)) expression = expression.expression
    const isSuper = ts.isCallExpression(expression) && expression.expression.kind === Kind.SuperKeyword
    const isCall = (ts.isCallExpression(expression) || ts.isDeleteExpression(expression)) && !isSuper
    if (!isCall && !isAssignment(expression)) return
    const kind = isCall ? 'removed call' : 'removed assignment'
    this.sites.push([{ kind, form: 'statement', start: node.getStart(this.#source), end: node.getEnd(), replacement: '{}', opens: true }])
  }

  #result(node: ts.Node): void {
    if (!ts.isReturnStatement(node) || node.expression === undefined) return
    const value = this.#text(node.expression)
    if (value === 'undefined') return
    this.#replace(node.expression, 'returned value', [value === 'true' ? 'false' : value === 'false' ? 'true' : 'undefined'])
  }

  #entry(node: ts.Node): void {
    if (!ts.isFunctionLike(node) || ts.isConstructorDeclaration(node)) return
    const body = (node as ts.FunctionLikeDeclaration).body
    if (body === undefined || !ts.isBlock(body) || body.statements.length < 2) return
    const at = body.getStart(this.#source) + 1
    this.sites.push([{ kind: 'early return', form: 'entry', start: at, end: at, replacement: ' return;', opens: false }])
  }
}

/** The sites of a source, in the order in which they begin. */
export function sitesOf(file: string, text: string): Site[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TS)
  const reader = new Reader(source)
  reader.read(source)
  return reader.sites
}

/** What a module loads of others, as it stands there; what only types need is left out. */
export function importsOf(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, ts.ScriptKind.TS)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    const given = ts.isImportDeclaration(node) && node.importClause?.isTypeOnly !== true ? node.moduleSpecifier : undefined
    const passed = ts.isExportDeclaration(node) && !node.isTypeOnly ? node.moduleSpecifier : undefined
    const called = ts.isCallExpression(node) && node.expression.kind === Kind.ImportKeyword ? node.arguments[0] : undefined
    for (const each of [given, passed, called]) if (each !== undefined && ts.isStringLiteralLike(each)) found.push(each.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}
