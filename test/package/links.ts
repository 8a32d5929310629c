/** Addresses in Markdown pages of the package, and which of them lead nowhere. No address is ever asked over a network. */
import path from 'node:path'

/** The text without fenced blocks and code spans. */
function prose(text: string): string {
  return text.replace(/^(```|~~~).*\n[\s\S]*?^\1.*$/gm, '').replace(/(`+)[^`]*?\1/g, '')
}

/** Addresses of links and pictures: those of Markdown, of HTML, and of reference definitions, in this order. */
export function addressesOf(text: string): string[] {
  const bare = prose(text)
  const inline = [...bare.matchAll(/\]\((?:<([^>]*)>|([^)\s]+))[^)]*\)/g)].map(
    ([, angled, plain]) => angled ?? plain ?? '',
  )
  const html = [...bare.matchAll(/\b(?:href|src|srcset)="([^"\s]*)[^"]*"/g)].map(
    ([, address = '']) => address,
  )
  const defined = [...bare.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)].map(([, address = '']) => address)
  return [...inline, ...html, ...defined]
}

/** Anchors of a page: of its headings, as the usual hosts make them, and those that are set by `id`. */
export function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>()
  const unfenced = text.replace(/^(```|~~~).*\n[\s\S]*?^\1.*$/gm, '')
  const headings = [...unfenced.matchAll(/^#{1,6} +(.*?)(?: +#+)?$/gm)].map(([, heading = '']) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[^>]*>/g, '')
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
  return [...headings, ...[...unfenced.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)]
}

/** The addresses of a page that lead nowhere: to no published file or folder of files, to no anchor, or over a protocol other than https. */
export function deadAddresses(
  name: string,
  files: readonly string[],
  textOf: (name: string) => string,
): string[] {
  return addressesOf(textOf(name)).filter((address) => {
    if (/^[a-z][a-z\d+.-]*:/i.test(address)) return !address.startsWith('https://')
    const [file = '', anchor] = address.split('#')
    const target =
      file === '' ? name : path.posix.join(path.posix.dirname(name), decodeURIComponent(file))
    const isThere =
      !file.startsWith('/') &&
      (files.includes(target) || files.some((each) => each.startsWith(`${target}/`)))
    if (!isThere) return true
    return (
      anchor !== undefined &&
      !(target.endsWith('.md') && anchorsOf(textOf(target)).includes(anchor))
    )
  })
}
