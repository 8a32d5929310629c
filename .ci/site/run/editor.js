/** The editor of the site: CodeMirror with the colours of the page. Tab leaves it, so that it is no trap for the keyboard. */
import { javascript } from '@codemirror/lang-javascript'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorView, keymap } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { minimalSetup } from 'codemirror'

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--program-keyword)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--program-string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--program-value)' },
  { tag: tags.comment, color: 'var(--program-comment)' },
  {
    tag: [
      tags.typeName,
      tags.className,
      tags.function(tags.variableName),
      tags.function(tags.propertyName),
    ],
    color: 'var(--program-name)',
  },
])

const look = EditorView.theme({
  '&': { backgroundColor: 'transparent', color: 'var(--vp-c-text-1)' },
  '&.cm-focused': { outline: '2px solid var(--vp-c-brand-1)' },
  '.cm-scroller': { lineHeight: 'var(--vp-code-line-height)' },
  '.cm-content': { fontFamily: 'var(--vp-font-family-mono)', caretColor: 'var(--vp-c-text-1)' },
  '.cm-cursor': { borderLeftColor: 'var(--vp-c-text-1)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground':
    {
      background: 'var(--vp-c-brand-soft)',
    },
})

/** Puts an editor into an element. `onRun` is called at Ctrl-Enter. Returns how to read and to replace the text. */
export function edit(parent, text, label, onRun) {
  const run = () => {
    onRun()
    return true
  }
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      keymap.of([{ key: 'Mod-Enter', run }]),
      minimalSetup,
      javascript({ typescript: true }),
      syntaxHighlighting(colours),
      look,
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label }),
    ],
  })
  return {
    text: () => view.state.doc.toString(),
    replace: (next) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    focus: () => view.focus(),
  }
}
