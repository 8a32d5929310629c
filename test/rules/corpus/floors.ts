/**
 * How many cases there must be, by packet type, kind of state and end: in each of those states, at least so many.
 *
 * Set under what there is when cases were last added, so that a builder that loses its cases, or an oracle that sees them otherwise, is noticed.
 */
import type { PacketName } from './facts.js'

/** Least numbers of one packet type. */
export interface Floors {
  readonly all: number
  /** By end, in every state before CONNACK. */
  readonly handshake: Readonly<Record<string, number>>
  /** By end, in every state of an open connection. */
  readonly open: Readonly<Record<string, number>>
}

type Table = Readonly<Record<PacketName, Floors>>

/** MQTT 5.0. */
const version5: Table = {
  reserved: { all: 30, handshake: { 'silent 81': 25, 'silent 82': 2, waiting: 1 }, open: { '81': 25, open: 1 } },
  connect: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 5 }, open: { '81': 5, '82': 5 } },
  connack: {
    all: 570,
    handshake: {
      '81': 6,
      '82': 105,
      '93': 2,
      '94': 2,
      '95': 3,
      '97': 2,
      disconnected: 3,
      open: 15,
      refused: 45,
      'silent 81': 185,
      'silent 82': 95,
      'silent 95': 5,
      'silent 97': 3,
      waiting: 8,
    },
    open: { '81': 185, '82': 370, '95': 5, '97': 3, open: 8 },
  },
  publish: {
    all: 420,
    handshake: { 'silent 81': 150, 'silent 82': 245, 'silent 94': 4, 'silent 95': 6, waiting: 10 },
    open: { '81': 155, '82': 45, '93': 4, '94': 15, '95': 6, '97': 5, open: 160 },
  },
  puback: {
    all: 220,
    handshake: { 'silent 81': 90, 'silent 82': 115, 'silent 95': 5, waiting: 9 },
    open: { '81': 90, '82': 45, '95': 5, '97': 3, open: 35 },
  },
  pubrec: {
    all: 225,
    handshake: { 'silent 81': 85, 'silent 82': 125, 'silent 95': 5, waiting: 9 },
    open: { '81': 85, '82': 45, '95': 5, '97': 3, open: 30 },
  },
  pubrel: {
    all: 210,
    handshake: { 'silent 81': 90, 'silent 82': 105, 'silent 95': 5, waiting: 9 },
    open: { '81': 90, '82': 45, '95': 5, '97': 3, open: 35 },
  },
  pubcomp: {
    all: 205,
    handshake: { 'silent 81': 90, 'silent 82': 105, 'silent 95': 5, waiting: 9 },
    open: { '81': 90, '82': 50, '95': 5, '97': 3, open: 30 },
  },
  subscribe: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 5 }, open: { '81': 5, '82': 5 } },
  unsubscribe: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 5 }, open: { '81': 5, '82': 5 } },
  pingreq: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 9 }, open: { '81': 5, '82': 9 } },
  suback: {
    all: 235,
    handshake: { 'silent 81': 85, 'silent 82': 135, 'silent 95': 5, waiting: 10 },
    open: { '81': 85, '82': 45, '95': 5, '97': 3, open: 80 },
  },
  unsuback: {
    all: 220,
    handshake: { 'silent 81': 85, 'silent 82': 120, 'silent 95': 5, waiting: 10 },
    open: { '81': 85, '82': 45, '95': 5, '97': 3, open: 65 },
  },
  pingresp: { all: 45, handshake: { 'silent 81': 15, 'silent 82': 15, 'silent 95': 7, waiting: 4 }, open: { '81': 15, '95': 9, open: 15 } },
  disconnect: {
    all: 270,
    handshake: { 'silent 81': 100, 'silent 82': 155, 'silent 95': 5, waiting: 7 },
    open: { '81': 100, '82': 40, '95': 5, '97': 3, disconnected: 110, open: 7 },
  },
  auth: {
    all: 255,
    handshake: { 'silent 81': 120, 'silent 82': 90, 'silent 95': 5, 'silent 97': 3, waiting: 7 },
    open: { '81': 120, '82': 80, '95': 5, '97': 3, open: 7 },
  },
}

/** MQTT 3.1.1: nothing is announced. */
const version4: Table = {
  connack: {
    all: 90,
    handshake: { open: 7, refused: 5, 'silent 81': 35, 'silent 82': 20, 'silent 95': 5, waiting: 6 },
    open: { open: 6, 'silent 81': 25, 'silent 82': 50, 'silent 95': 5 },
  },
  puback: {
    all: 45,
    handshake: { 'silent 81': 15, 'silent 82': 15, 'silent 95': 5, waiting: 6 },
    open: { open: 10, 'silent 81': 20, 'silent 82': 1, 'silent 95': 5 },
  },
  pubrec: {
    all: 40,
    handshake: { 'silent 81': 15, 'silent 82': 10, 'silent 95': 5, waiting: 6 },
    open: { open: 10, 'silent 81': 15, 'silent 82': 1, 'silent 95': 5 },
  },
  pubrel: {
    all: 35,
    handshake: { 'silent 81': 15, 'silent 82': 10, 'silent 95': 5, waiting: 6 },
    open: { open: 10, 'silent 81': 15, 'silent 82': 1, 'silent 95': 5 },
  },
  pubcomp: {
    all: 35,
    handshake: { 'silent 81': 15, 'silent 82': 10, 'silent 95': 5, waiting: 6 },
    open: { open: 10, 'silent 81': 15, 'silent 82': 1, 'silent 95': 5 },
  },
  suback: {
    all: 45,
    handshake: { 'silent 81': 20, 'silent 82': 10, 'silent 95': 5, waiting: 8 },
    open: { open: 10, 'silent 81': 20, 'silent 82': 2, 'silent 95': 5 },
  },
  unsuback: {
    all: 30,
    handshake: { 'silent 81': 15, 'silent 82': 5, 'silent 95': 5, waiting: 6 },
    open: { open: 8, 'silent 81': 15, 'silent 82': 1, 'silent 95': 5 },
  },
  pingresp: {
    all: 20,
    handshake: { 'silent 81': 10, 'silent 82': 3, 'silent 95': 5, waiting: 4 },
    open: { open: 7, 'silent 81': 10, 'silent 95': 5 },
  },
  publish: {
    all: 80,
    handshake: { 'silent 81': 25, 'silent 82': 45, 'silent 95': 2, waiting: 10 },
    open: { open: 35, 'silent 81': 25, 'silent 82': 8, 'silent 95': 2 },
  },
  disconnect: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 9 }, open: { 'silent 81': 5, 'silent 82': 9 } },
  auth: { all: 9, handshake: { 'silent 81': 9 }, open: { 'silent 81': 9 } },
  connect: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 7 }, open: { 'silent 81': 5, 'silent 82': 7 } },
  subscribe: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 7 }, open: { 'silent 81': 5, 'silent 82': 7 } },
  unsubscribe: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 7 }, open: { 'silent 81': 5, 'silent 82': 7 } },
  pingreq: { all: 10, handshake: { 'silent 81': 5, 'silent 82': 10 }, open: { 'silent 81': 5, 'silent 82': 10 } },
  reserved: { all: 30, handshake: { 'silent 81': 25, 'silent 82': 5, waiting: 1 }, open: { open: 1, 'silent 81': 30 } },
}

/** The least numbers of a version. */
export const floorsOf = (version: 4 | 5): Table => (version === 5 ? version5 : version4)
