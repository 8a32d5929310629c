/** What the greenhouse says and takes: shared by the device, the service and the page. */
import * as mq from 'mqwire/typed'

/** A measurement. */
export interface Reading {
  readonly celsius: number
  readonly humidity: number
}

export const greenhouse = mq.contract({
  /** What a house measures, kept for whoever comes later. */
  climate: mq.channel('greenhouse/{house}/climate', mq.json<Reading>(), { qos: 1, retain: true }),
  /** Opens or closes the windows of a house: percent in, percent before out. */
  windows: mq.operation('greenhouse/{house}/windows', mq.number(), mq.number()),
  /** The readings of the last minutes, one after the other. */
  history: mq.operation(
    'greenhouse/{house}/history',
    mq.json<{ readonly minutes: number }>(),
    mq.json<Reading>(),
  ),
})
