import { describe, expect, it } from 'vitest'
import { AckQueue } from '../../../../src/client/session/ack-queue.js'
import { forgetful } from '../../../../src/client/session/persistence.js'
import { QOS2_EARLIER, REPEAT, ReceiveWindow } from '../../../../src/client/session/receive-window.js'
import { DONE, RELEASED, SendWindow } from '../../../../src/client/session/send-window.js'
import { Session } from '../../../../src/client/session/session.js'
import { FAULT } from '../../../../src/client/session/window-host.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../../../src/wire/constants.js'
import {
  configuration,
  connackPacket,
  connected,
  connectPacket,
  durablyConnected,
  expectClose,
  expectQuiet,
  RecordingPort,
  reconnect,
  takeAcks,
  takeActions,
} from './drive.js'

describe('a durable store', () => {
  it('PUBREC waits until the identifier is safe', () => {
    const { session, port } = durablyConnected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(9, 2), 0)
    expect(port.requests).toEqual([['put-inbound', 9]])
    expect(takeAcks(session.acks)).toEqual([])
    expect(session.receiveWindow.handlePublish(9, 2)).toBe(REPEAT)
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0]])
    expect(port.requests).toHaveLength(1)
    expectQuiet(session)
  })

  it('a message in store cannot be settled again', () => {
    const { session, port } = durablyConnected()
    const ticket = session.receiveWindow.handlePublish(9, 2)
    expect([session.receiveWindow.settle(ticket, 0x10), session.receiveWindow.settle(ticket, 0)]).toEqual([true, false])
    expect(port.requests).toHaveLength(1)
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0x10]])
  })

  it('what comes behind waits too, QoS 1 included [MQTT-4.6.0-2]', () => {
    const { session, port } = durablyConnected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(1, 2), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(2, 1), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(3, 2), 0)
    expect(port.requests).toEqual([
      ['put-inbound', 1],
      ['put-inbound', 3],
    ])
    port.grant(1)
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrec', 1, 0],
      ['puback', 2, 0],
      ['pubrec', 3, 0],
    ])
  })

  it('QoS 1 and refused QoS 2 need no record', () => {
    const { session, port } = durablyConnected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(1, 1), 0)
    session.receiveWindow.settle(session.receiveWindow.handlePublish(2, 2), 0x80)
    expect(port.requests).toEqual([])
    expect(takeAcks(session.acks)).toEqual([
      ['puback', 1, 0],
      ['pubrec', 2, 0x80],
    ])
    expectQuiet(session)
  })

  it('PUBREL waits until the release is safe, however often PUBREC comes', () => {
    const { session, port } = durablyConnected()
    const { sendWindow } = session
    const id = sendWindow.publish(2)
    expect([sendWindow.handleAck(PUBREC, id, 0), sendWindow.handleAck(PUBREC, id, 0)]).toEqual([RELEASED, RELEASED])
    expect(port.requests).toEqual([['put-release', id]])
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrel', id, 0]])
    expect(sendWindow.handleAck(PUBCOMP, id, 0)).toBe(DONE)
    // Whoever keeps the publish sees that it is over.
    expect(port.requests).toHaveLength(1)
    expectQuiet(session)
  })

  it.each([
    ['PUBACK', 1],
    ['a failing PUBREC', 2],
  ])('%s ends the exchange, and asks for nothing', (_name, qos) => {
    const { session, port } = durablyConnected()
    const id = session.sendWindow.publish(qos)
    expect(qos === 1 ? session.sendWindow.handleAck(PUBACK, id, 0) : session.sendWindow.handleAck(PUBREC, id, 0x97)).toBe(DONE)
    expect(port.requests).toEqual([])
    expectQuiet(session)
  })

  it('requests write nothing, withdrawn packets neither', () => {
    const { session, port } = durablyConnected()
    session.sendWindow.handleAnswer('subscribe', session.sendWindow.request('subscribe', 1), 1)
    session.sendWindow.withdraw(session.sendWindow.publish(1))
    expect(port.requests).toEqual([])
    expectQuiet(session)
  })

  it('each request is answered by itself, and once', () => {
    const { session, port } = durablyConnected()
    for (const id of [1, 2, 3]) session.receiveWindow.settle(session.receiveWindow.handlePublish(id, 2), 0)
    expect(port.requests).toEqual([1, 2, 3].map((id) => ['put-inbound', id]))
    for (const place of [-1, 3, 99]) port.grant(place)
    expect(takeAcks(session.acks)).toEqual([])
    port.grant(0)
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 1, 0]])
  })

  it('hears of every reset of the session, and of nothing else that happens to it', () => {
    const { session, port } = durablyConnected()
    reconnect(session)
    expect(port.resets).toBe(0)
    reconnect(session, false)
    expect(port.resets).toBe(1)
    session.reset()
    expect(port.resets).toBe(2)
    expect(port.requests).toEqual([])
  })
})

describe('PUBCOMP where the session is kept in a store', () => {
  /** PUBREC was sent for identifier 9; the request for its record has place 0. */
  function received() {
    const { session, port } = durablyConnected()
    session.receiveWindow.settle(session.receiveWindow.handlePublish(9, 2), 0)
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0]])
    return { session, port, receiveWindow: session.receiveWindow }
  }

  it('waits until the identifier is forgotten, as the server uses it anew then', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    expect(port.requests.slice(1)).toEqual([['delete-inbound', 9]])
    expectQuiet(session)
    port.grant(1)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
    expect(receiveWindow.handlePublish(9, 2)).toBeGreaterThan(0)
    expectQuiet(session)
  })

  it('a second PUBREL meanwhile is answered with the first; one behind PUBCOMP is unknown, and writes nothing', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    receiveWindow.handlePubrel(9)
    expectQuiet(session)
    port.grant(1)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
    receiveWindow.handlePubrel(9)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0x92]])
    expect(port.requests.slice(1)).toEqual([['delete-inbound', 9]])
    expect(receiveWindow.open).toBe(0)
  })

  it('an identifier that is being forgotten brings no new message: the same at QoS 2, broken at QoS 1', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    expect(receiveWindow.handlePublish(9, 2, true)).toBe(REPEAT)
    expectQuiet(session)
    expect(receiveWindow.handlePublish(9, 1)).toBe(FAULT)
    expectClose(session, 0x82)
    expect(port.requests).toHaveLength(2)
  })

  it('several wait, each for its own', () => {
    const { session, port } = durablyConnected()
    const { receiveWindow } = session
    for (const id of [1, 2]) receiveWindow.settle(receiveWindow.handlePublish(id, 2), 0)
    for (const place of [0, 1]) port.grant(place)
    takeAcks(session.acks)
    for (const id of [1, 2]) receiveWindow.handlePubrel(id)
    port.grant(3)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 2, 0]])
    port.grant(2)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 1, 0]])
  })

  it('when the connection ends before: PUBREL on the next one waits for an answer of its own, and the late one sends nothing', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    reconnect(session)
    receiveWindow.handlePubrel(9)
    port.grant(1)
    expectQuiet(session)
    expect(port.requests.slice(1)).toEqual([
      ['delete-inbound', 9],
      ['delete-inbound', 9],
    ])
    port.grant(2)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
  })

  it('when the connection ends before: a repeat of PUBLISH on the next one is not delivered', () => {
    const { session, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    reconnect(session)
    expect(receiveWindow.handlePublish(9, 2, true)).toBe(REPEAT)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 9, 0]])
  })

  it('when the store answers between two connections: nothing is sent, and PUBREL asks again', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    session.suspend()
    port.grant(1)
    expect([takeActions(session), takeAcks(session.acks)]).toEqual([[], []])
    reconnect(session)
    receiveWindow.handlePubrel(9)
    port.grant(2)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
  })

  it('PINGRESP confirms what was sent before it', () => {
    const { session, port } = durablyConnected()
    session.ask(0)
    takeActions(session)
    session.handlePacket({ type: 'pingresp' }, 0)
    expect(port.confirmed).toBe(1)
  })

  it('a late answer for an earlier connection does not stand for a later exchange with the same identifier', () => {
    const { session, port, receiveWindow } = received()
    receiveWindow.handlePubrel(9)
    reconnect(session)
    receiveWindow.handlePubrel(9)
    port.grant(2)
    receiveWindow.settle(receiveWindow.handlePublish(9, 2), 0)
    port.grant(3)
    takeAcks(session.acks)
    receiveWindow.handlePubrel(9)
    expect(port.requests.slice(1)).toEqual([
      ['delete-inbound', 9],
      ['delete-inbound', 9],
      ['put-inbound', 9],
      ['delete-inbound', 9],
    ])
    port.grant(1)
    expectQuiet(session)
    port.grant(4)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
  })

  it('what was received on an earlier connection waits as well', () => {
    const { session, port, receiveWindow } = received()
    reconnect(session)
    receiveWindow.handlePubrel(9)
    expect(port.requests.slice(1)).toEqual([['delete-inbound', 9]])
    expectQuiet(session)
    port.grant(1)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 9, 0]])
  })
})

describe('a store that confirms after a reset all the same', () => {
  it('acknowledges and releases nothing', () => {
    const acks = new AckQueue()
    const port = new RecordingPort()
    const host = { acks, actions: [], persistence: port, fail: () => undefined }
    const inbound = new ReceiveWindow(host, 10, true)
    const outbound = new SendWindow(host)
    inbound.settle(inbound.handlePublish(1, 2), 0)
    inbound.settle(inbound.handlePublish(2, 2), 0)
    port.grant(0)
    inbound.handlePubrel(1)
    outbound.start(1)
    outbound.handleAck(PUBREC, outbound.publish(2), 0)
    expect(takeAcks(acks)).toEqual([['pubrec', 1, 0]])
    inbound.reset()
    outbound.reset()
    expect(port.requests).toHaveLength(4)
    for (const place of port.requests.keys()) port.grant(place)
    expect(takeAcks(acks)).toEqual([])
    expect([inbound.unsettled, inbound.open, outbound.inFlight]).toEqual([0, 0, 0])
  })

  it('and nothing for an identifier that is in use again', () => {
    const { session, port } = durablyConnected()
    const { receiveWindow, sendWindow } = session
    const release = (): number => {
      const id = sendWindow.publish(2)
      sendWindow.handleAck(PUBREC, id, 0)
      return id
    }
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    const id = release()
    session.reset()
    sendWindow.start(10)
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    for (let count = 1; count < 65_535; count++) sendWindow.withdraw(sendWindow.publish(1))
    expect(release()).toBe(id)
    expect(port.requests.slice(2)).toEqual([
      ['put-inbound', 1],
      ['put-release', id],
    ])
    for (const place of [0, 1]) port.grant(place)
    expect(takeAcks(session.acks)).toEqual([])
    for (const place of [3, 2]) port.grant(place)
    expect(takeAcks(session.acks)).toEqual([
      ['pubrel', id, 0],
      ['pubrec', 1, 0],
    ])
  })

  it('nor for one that is being forgotten again', () => {
    const { session, port } = durablyConnected()
    const { receiveWindow } = session
    const forget = (place: number): void => {
      receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
      port.grant(place)
      receiveWindow.handlePubrel(1)
    }
    forget(0)
    reconnect(session, false)
    forget(2)
    takeAcks(session.acks)
    port.grant(1)
    expectQuiet(session)
    port.grant(3)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 1, 0]])
  })
})

describe('identifiers that an earlier process has received', () => {
  /** The first connection of a session that goes on, with identifier 5 restored. */
  function restored() {
    const session = new Session({ ...configuration, ownsSession: true })
    const port = new RecordingPort()
    session.persistence = port
    session.receiveWindow.ids.set(5, QOS2_EARLIER)
    session.connect(connectPacket({ cleanStart: false }))
    session.handlePacket(connackPacket({}, { sessionPresent: true }), 0)
    takeActions(session)
    return { session, port, receiveWindow: session.receiveWindow }
  }

  it('PUBLISH at QoS 2 gets PUBREC and is not delivered [MQTT-4.3.3-10]; its PUBREL gets PUBCOMP once it is forgotten', () => {
    const { session, port, receiveWindow } = restored()
    expect(receiveWindow.handlePublish(5, 2, true)).toBe(REPEAT)
    expect(takeAcks(session.acks)).toEqual([['pubrec', 5, 0]])
    expect(receiveWindow.open).toBe(1)
    expect(port.requests).toEqual([])
    receiveWindow.handlePubrel(5)
    expect(port.requests).toEqual([['delete-inbound', 5]])
    expectQuiet(session)
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 5, 0]])
    expect(receiveWindow.open).toBe(0)
    expect(receiveWindow.handlePublish(5, 2)).toBeGreaterThanOrEqual(0)
  })

  it('PUBREL at once gets PUBCOMP', () => {
    const { session, port, receiveWindow } = restored()
    receiveWindow.handlePubrel(5)
    expect(port.requests).toEqual([['delete-inbound', 5]])
    port.grant(0)
    expect(takeAcks(session.acks)).toEqual([['pubcomp', 5, 0]])
    expect(receiveWindow.open).toBe(0)
  })

  it('counts for no message of another identifier, and not at all once the session is lost', () => {
    const { session, receiveWindow } = restored()
    expect(receiveWindow.open).toBe(0)
    expect(receiveWindow.handlePublish(6, 2)).toBeGreaterThanOrEqual(0)
    expectQuiet(session)
    reconnect(session, false)
    expect(receiveWindow.handlePublish(5, 2, true)).toBeGreaterThanOrEqual(0)
  })
})

describe('a memory store', () => {
  it('queues no action, for a whole life of every kind of exchange', () => {
    const session = connected()
    const { receiveWindow, sendWindow } = session
    expect(session.persistence).toBe(forgetful)
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
    expectQuiet(session)
  })

  it('is asked for nothing, also when its answers would be the only ones', () => {
    const asked: string[] = []
    const session = connected()
    session.persistence = { durable: false, request: (operation) => void asked.push(operation), confirm: () => undefined, reset: () => undefined }
    const { receiveWindow, sendWindow } = session
    receiveWindow.settle(receiveWindow.handlePublish(1, 2), 0)
    receiveWindow.handlePubrel(1)
    receiveWindow.settle(receiveWindow.handlePublish(2, 2), 0)
    sendWindow.handleAck(PUBREC, sendWindow.publish(2), 0)
    reconnect(session)
    receiveWindow.handlePublish(2, 1)
    expect(asked).toEqual([])
  })

  it('grants nothing', () => {
    const granted: string[] = []
    forgetful.request('put-inbound', 1, () => granted.push('put-inbound'))
    forgetful.reset()
    expect([forgetful.durable, granted]).toEqual([false, []])
  })
})
