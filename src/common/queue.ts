/**
 * A first-in first-out queue with removal from the middle in constant time: a doubly linked list
 * through the elements themselves.
 *
 * An element can be in only one queue. It has no bound; its owner must limit it.
 */

/** The links in an element of a queue of `T`. */
export interface Linked<T> {
  previous: T | undefined
  following: T | undefined
}

/** FIFO of `T`. */
export class Queue<T extends Linked<T>> {
  length = 0
  first: T | undefined
  last: T | undefined

  push(element: T): void {
    element.previous = this.last
    if (this.last === undefined) this.first = element
    else this.last.following = element
    this.last = element
    this.length += 1
  }

  /** Adds an element before all others. */
  unshift(element: T): void {
    element.previous = undefined
    element.following = this.first
    if (this.first === undefined) this.last = element
    else this.first.previous = element
    this.first = element
    this.length += 1
  }

  /** Removes an element from any place. */
  remove(element: T): void {
    const { previous, following } = element
    if (previous === undefined) this.first = following
    else previous.following = following
    if (following === undefined) this.last = previous
    else following.previous = previous
    element.previous = undefined
    element.following = undefined
    this.length -= 1
  }
}
