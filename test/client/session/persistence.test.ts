import { describe, expect, it } from 'vitest'
import { AckQueue } from '../../../src/client/session/ack-queue.js'
import type { Action } from '../../../src/client/session/actions.js'
import { DONE, RELEASED, REPEAT } from '../../../src/client/session/numbers.js'
import { Persistence } from '../../../src/client/session/persistence.js'
import { ReceiveWindow } from '../../../src/client/session/receive-window.js'
import { SendWindow } from '../../../src/client/session/send-window.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../src/wire/constants.js'
import { connected, expectQuiet, takeAcks, takeActions } from './drive.js'

const durable = { durableStore: true }
const persist = (operation: string, id: number, token: number) => ({ type: 'persist', operation, id, token })

describe('a durable store', () => {
  it('E31 PUBREC waits until the identifier is safe', () => {
    const session = connected(durable)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(9, 2), 0)
    expect(takeActions(session)).toEqual([persist('put-inbound', 9, 1)])
    expect(takeAcks(session.acks)).toEqual([])
    expect(session.receiveWindow.handlePublish(9, 2)).toBe(REPEAT)
    expect(takeAcks(session.acks)).toEqual([])
    session.persistence.handlePersisted(1)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0]])
    expect(takeActions(session)).toEqual([])
  })

  it('E31 a message in store cannot be settled again', () => {
    const session = connected(durable)
    const ticket = session.receiveWindow.handlePublish(9, 2)
    expect([session.receiveWindow.settle(ticket, 0x10), session.receiveWindow.settle(ticket, 0)]).toEqual([true, false])
    expect(takeActions(session)).toHaveLength(1)
    session.persistence.handlePersisted(1)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0x10]])
  })

  it('E31 what comes behind waits too, QoS 1 included [MQTT-4.6.0-2]', () => {
    const session = connected(durable)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(1, 2), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(2, 1), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(3, 2), 0)
    expect(takeActions(session)).toEqual([persist('put-inbound', 1, 1), persist('put-inbound', 3, 2)])
    session.persistence.handlePersisted(2)
    expect(takeAcks(session.acks)).toEqual([])
    session.persistence.handlePersisted(1)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 1, 0],
      ['puback', 2, 0],
      ['pubrec', 3, 0],
    ])
  })

  it('QoS 1 and refused QoS 2 need no record', () => {
    const session = connected(durable)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(1, 1), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(2, 2), 0x80)
    expect(takeActions(session)).toEqual([])
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 1, 0],
      ['pubrec', 2, 0x80],
    ])
  })

  it('PUBREL ends the record without waiting; an unknown PUBREL writes nothing', () => {
    const session = connected(durable)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(9, 2), 0)
    session.persistence.handlePersisted(1)
    takeActions(session)
    takeAcks(session.acks)
    session.receiveWindow.handlePubrel(9)
    session.receiveWindow.handlePubrel(9)
    expect(takeActions(session)).toEqual([persist('delete-inbound', 9, 0)])
    expect(takeAcks(session.acks)).toEqual([
      ['pubcomp', 9, 0],
      ['pubcomp', 9, 0x92],
    ])
  })

  it('PUBREL waits until the release is safe, however often PUBREC comes', () => {
    const session = connected(durable)
    const { sendWindow } = session
    const id = sendWindow.publish(2)
    expect([sendWindow.handleAck(PUBREC, id, 0), sendWindow.handleAck(PUBREC, id, 0)]).toEqual([RELEASED, RELEASED])
    expect(takeActions(session)).toEqual([persist('put-release', id, 1)])
    expect(takeAcks(session.acks)).toEqual([])
    session.persistence.handlePersisted(1)
    expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
    expect(sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
    expect(takeActions(session)).toEqual([persist('delete-outbound', id, 0)])
  })

  it.each([
    ['PUBACK', 1],
    ['a failing PUBREC', 2],
  ])('%s ends the record', (_name, qos) => {
    const session = connected(durable)
    const id = session.sendWindow.publish(qos)
    expect(qos === 1 ? session.sendWindow.handleAck(PUBACK, id, 0) : session.sendWindow.handleAck(PUBREC, id, 0x97)).toBe(DONE)
    expect(takeActions(session)).toEqual([persist('delete-outbound', id, 0)])
    expect(takeAcks(session.acks)).toEqual([])
  })

  it('requests write nothing, withdrawn packets neither', () => {
    const session = connected(durable)
    session.sendWindow.handleAnswer('subscribe', session.sendWindow.request('subscribe', 1), 1)
    session.sendWindow.withdraw(session.sendWindow.publish(1))
    expectQuiet(session)
  })

  it('tokens differ, and those never given, of note, or given back before are ignored', () => {
    const session = connected(durable)
    for (const id of [1, 2, 3]) session.receiveWindow.settle(session.receiveWindow.handlePublish(id, 2), 0)
    expect(takeActions(session).map((action) => action.type === 'persist' && action.token)).toEqual([1, 2, 3])
    for (const token of [0, -1, 4, 99]) session.persistence.handlePersisted(token)
    expect(takeAcks(session.acks)).toEqual([])
    session.persistence.handlePersisted(1)
    session.persistence.handlePersisted(1)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0]])
  })

  it('tokens of a session that was reset are stale, also for an identifier that is in use again', () => {
    const session = connected(durable)
    const { receiveWindow, sendWindow } = session
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    const id = sendWindow.publish(2)
    sendWindow.handleAck(PUBREC, id, 0)
    takeActions(session)
    session.reset()
    sendWindow.start(10)
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    for (let count = 1; count < 65_535; count++) sendWindow.withdraw(sendWindow.publish(1))
    expect(sendWindow.publish(2)).toBe(id)
    sendWindow.handleAck(PUBREC, id, 0)
    expect(takeActions(session)).toEqual([persist('put-inbound', 1, 3), persist('put-release', id, 4)])
    session.persistence.handlePersisted(1)
    session.persistence.handlePersisted(2)
    expect(takeAcks(session.acks)).toEqual([])
    session.persistence.handlePersisted(4)
    session.persistence.handlePersisted(3)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrel', id, 0],
      ['pubrec', 1, 0],
    ])
  })

  it('grants each request once, and none after a reset', () => {
    const actions: Action[] = []
    const granted: number[] = []
    const persistence = new Persistence(true, actions)
    for (const id of [1, 2, 3]) persistence.request('put-inbound', id, () => granted.push(id))
    persistence.note('delete-inbound', 1)
    expect([granted, actions.length]).toEqual([[], 4])
    persistence.handlePersisted(2)
    persistence.handlePersisted(2)
    expect(granted).toEqual([2])
    persistence.reset()
    for (const token of [1, 2, 3]) persistence.handlePersisted(token)
    expect(granted).toEqual([2])
  })

  it('a store that grants after the reset all the same acknowledges and releases nothing', () => {
    const acks = new AckQueue()
    const granted: (() => void)[] = []
    const request = (_operation: string, _id: number, grant: () => void): void => void granted.push(grant)
    const host = { acks, actions: [], persistence: { durable: true, request, note: () => undefined }, fail: () => undefined }
    const inbound = new ReceiveWindow(host, 10, true)
    const outbound = new SendWindow(host)
    inbound.settle(inbound.handlePublish(1, 2), 0)
    outbound.start(1)
    outbound.handleAck(PUBREC, outbound.publish(2), 0)
    inbound.reset()
    outbound.reset()
    for (const grant of granted) grant()
    expect(granted).toHaveLength(2)
    expect(takeAcks(acks)).toEqual([])
    expect([inbound.unsettled, outbound.inFlight]).toEqual([0, 0])
  })
})

describe('a memory store', () => {
  it('queues no action, for a whole life of every kind of exchange', () => {
    const session = connected()
    const { receiveWindow, sendWindow } = session
    receiveWindow.settle(receiveWindow.handlePublish(1, 1), 0)
    receiveWindow.settle(receiveWindow.handlePublish(2, 2), 0)
    receiveWindow.settle(receiveWindow.handlePublish(3, 2), 0x80)
    receiveWindow.handlePubrel(2)
    sendWindow.handleAck(PUBACK, sendWindow.publish(1), 0)
    const id = sendWindow.publish(2)
    sendWindow.handleAck(PUBREC, id, 0)
    sendWindow.handleAck(PUBCOMP, id, 0)
    sendWindow.handleAck(PUBREC, sendWindow.publish(2), 0x97)
    expect(takeActions(session)).toEqual([])
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 1, 0],
      ['pubrec', 2, 0],
      ['pubrec', 3, 0x80],
      ['pubcomp', 2, 0],
      ['pubrel', id, 0],
    ])
    session.persistence.handlePersisted(1)
    expectQuiet(session)
  })
})
