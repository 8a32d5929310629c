/**
 * Transports that can be broken: each connection of a device goes through a link, which passes everything on until it is told otherwise.
 *
 * It stands between the client and any transport, so that links over a real broker break just as those in memory do. What a page's WebSocket or
 * a memory pair delivers through `chunk()` or `read()` is handed on in order; nothing is delivered from inside `open()` or `write()`.
 */

/** All links that are open. */
export class Links {
  #open = new Set()
  #stalled = false

  /** How many are open. */
  get size() {
    return this.#open.size
  }

  /** The same transport, as a link; `owner` is whoever dialled it. */
  add(transport, owner) {
    const link = new Link(transport, owner, () => this.#open.delete(link))
    this.#open.add(link)
    link.stall(this.#stalled)
    return link
  }

  /** Cuts the links of those owners that are chosen; gives how many. */
  cut(chosen) {
    return this.#each(chosen, (link) => link.cut())
  }

  /** Makes links black holes: nothing comes or goes any more, and nobody is told. */
  silence(chosen) {
    return this.#each(chosen, (link) => link.silence())
  }

  /** Holds back everything that comes in, on all links, until it is called with false. */
  stall(on) {
    this.#stalled = on
    for (const link of this.#open) link.stall(on)
  }

  #each(chosen, act) {
    const links = [...this.#open].filter(({ owner }) => chosen(owner))
    for (const link of links) act(link)
    return links.length
  }
}

class Link {
  owner
  #inner
  #sink
  #over
  #silent = false
  #stalled = false
  // This side has cut it.
  #givenUp = false
  // The other side has ended it, and this one was not told.
  #unseen = false
  // What came while stalled, copied.
  #held = []

  constructor(inner, owner, over) {
    this.#inner = inner
    this.owner = owner
    this.#over = over
  }

  open(sink) {
    this.#sink = sink
    this.#inner.open({
      buffer: () => sink.buffer(),
      read: (length) => {
        if (this.#isFlowing) sink.read(length)
        else this.#hold(sink.buffer().subarray(0, length))
      },
      chunk: (bytes) => {
        if (this.#isFlowing) sink.chunk(bytes)
        else this.#hold(bytes)
      },
      drain: () => sink.drain(),
      closed: (cause) => {
        // What the other side does at the far end of a black hole is not seen here.
        if (this.#silent && !this.#givenUp) this.#unseen = true
        else this.#end(cause)
      },
    })
  }

  write(bytes, written) {
    if (!this.#silent) return this.#inner.write(bytes, written)
    if (written !== undefined) queueMicrotask(written)
    return true
  }

  close() {
    // A black hole carries no goodbye.
    if (this.#silent) this.#inner.destroy()
    else this.#inner.close()
  }

  destroy(cause) {
    this.#held = []
    if (this.#unseen && !this.#givenUp) queueMicrotask(() => this.#end(cause))
    this.#givenUp = true
    this.#inner.destroy(cause)
  }

  cut() {
    this.destroy(new Error('The simulator cut the link'))
  }

  silence() {
    this.#silent = true
    this.#held = []
  }

  stall(on) {
    this.#stalled = on
    if (!on) this.#release()
  }

  get #isFlowing() {
    return !this.#silent && !this.#stalled
  }

  #end(cause) {
    this.#over()
    this.#release()
    this.#sink.closed(cause)
  }

  #hold(bytes) {
    if (!this.#silent) this.#held.push(bytes.slice())
  }

  #release() {
    for (const bytes of this.#held.splice(0)) this.#sink?.chunk(bytes)
  }
}
