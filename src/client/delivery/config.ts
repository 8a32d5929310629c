/**
 * Which fields of a consumer no console shows.
 */
const internal = { writable: true }

/** Fields of a consumer that are for the code of this folder. */
export const internalFields = {
  ready: internal,
  onReadable: internal,
  onRead: internal,
  onClosing: internal,
  onEnd: internal,
  onLeave: internal,
  config: internal,
  mark: internal,
}
