/**
 * Reports on the console, of what nothing in the program listens to.
 *
 * `client/node.ts` and `client/browser.ts` say how they are printed. There is at most one a second and code, over all clients of a process: a fault in
 * a handler may happen a thousand times a second.
 */

/** What a report is about. Stable: programs and command lines compare against it. */
export type ReportCode =
  | 'MQWIRE_HANDLER_FAILED'
  | 'MQWIRE_NOT_CONNECTED'
  | 'MQWIRE_OPTION_IGNORED'
  | 'MQWIRE_PUBLISH_REFUSED'
  | 'MQWIRE_UNSENT'

/** A sentence and, below it, details such as a stack. */
export interface Said {
  readonly text: string
  readonly detail?: string | undefined
}

/** Reports what `say` gives, which is called where that is printed and only there; `count` is how many it stands for, default 1. */
export type Report = (code: ReportCode, say: () => Said, count?: number) => void
/** Prints it. */
export type Print = (code: ReportCode, text: string, detail?: string) => void

interface Waiting {
  count: number
  say: () => Said
}

/** At most one report a second and code; the latest of those between follows with their count. `afterSecond` calls back once, in a second or at the end. */
export function spaced(print: Print, afterSecond: (callback: () => void) => void): Report {
  const open = new Map<ReportCode, Waiting>()
  return function report(code, say, count = 1) {
    const between = open.get(code)
    if (between !== undefined) {
      between.say = say
      between.count += count
      return
    }
    const next: Waiting = { count: 0, say }
    open.set(code, next)
    const { text, detail } = say()
    print(code, count > 1 ? `${text} (and ${count - 1} more)` : text, detail)
    afterSecond(() => {
      open.delete(code)
      if (next.count > 0) report(code, next.say, next.count)
    })
  }
}
