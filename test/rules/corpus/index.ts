/** The corpus: byte sequences that a server may send, good and bad, with what a client has to make of each in each state of a session. */
import { addAcks } from './build/acks.js'
import { addAnswers } from './build/answers.js'
import { addAuth, addConnack, addDisconnect, addPingresp } from './build/connection.js'
import { addForeign, addReserved } from './build/framing.js'
import { addPublish } from './build/publish.js'
import { addSequences } from './build/sequences.js'
import { addVersion4 } from './build/version4.js'
import { block, frame, string, u16 } from './bytes.js'
import { Book, type Case } from './case.js'

function version5(): readonly Case[] {
  const book = new Book(5)
  addReserved(book)
  addForeign(book, 'connect', frame(0x10, string('MQTT'), [5, 2, 0, 60], block(), string('c')))
  addConnack(book)
  addPublish(book)
  addAcks(book)
  addForeign(book, 'subscribe', frame(0x82, u16(1), block(), string('t'), [0]))
  addForeign(book, 'unsubscribe', frame(0xa2, u16(1), block(), string('t')))
  addForeign(book, 'pingreq', [0xc0, 0])
  addAnswers(book)
  addPingresp(book)
  addDisconnect(book)
  addAuth(book)
  addSequences(book)
  return book.cases
}

function version4(): readonly Case[] {
  const book = new Book(4)
  addVersion4(book)
  return book.cases
}

const made = new Map<4 | 5, readonly Case[]>()

/** All cases of a version, always in the same order. */
export function corpus(version: 4 | 5): readonly Case[] {
  const cases = made.get(version) ?? (version === 5 ? version5() : version4())
  made.set(version, cases)
  return cases
}
